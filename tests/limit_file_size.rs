//! A program under a file-size limit.

use burstline::pool::{Pool, PoolConfig};

#[test]
fn a_pool_beyond_the_file_size_limit_is_refused_by_the_limit_and_no_signal_ends_the_program() {
    let l = libc::rlimit { rlim_cur: 8192, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads one rlimit; this file has no other test.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &l) }, 0);
    let e = Pool::new(PoolConfig::default()).err();
    // Before anything is printed: the output may be a file, and longer than that.
    let l = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, ..l };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &l) }, 0);
    let e = e.unwrap();
    assert!(e.text().contains("file-size limit") && e.text().contains("8192"), "{e}");
}
