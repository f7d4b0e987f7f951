use super::*;
use crate::base::Errno;
use proptest::prelude::*;

fn words(line: &str) -> Vec<String> {
    line.split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// On a machine with CPUs 0 to 7.
fn parse(line: &str) -> Result<(EalArgs, usize)> {
    EalArgs::parse_on(&words(line), &[0, 1, 2, 3, 4, 5, 6, 7])
}

fn ok(line: &str) -> EalArgs {
    parse(line).unwrap_or_else(|e| panic!("{line}: {e}")).0
}

fn lcores(a: &EalArgs) -> Vec<u32> {
    a.lcores.iter().flatten().map(|s| s.lcore).collect()
}

#[test]
fn a_line_from_a_tutorial_is_read_whole() {
    let line = "l2fwd -l 0-3 -n 4 --vdev=net_pcap0,rx_pcap=a.pcap --vdev net_null1 --no-pci --no-huge -m 256 \
                --file-prefix x --log-level=debug --main-lcore 1 --in-memory --debug-pools --wrap net_null1,trace,n=1 \
                -- -p 3";
    let (a, at) = parse(line).unwrap();
    assert_eq!(words(line)[at..], ["-p", "3"]);
    assert_eq!(lcores(&a), [0, 1, 2, 3]);
    assert_eq!(a.main_lcore, Some(1));
    assert_eq!(a.vdevs.iter().map(|d| d.driver.as_str()).collect::<Vec<_>>(), ["net_pcap", "net_null"]);
    assert!(a.no_pci && a.no_huge && a.in_memory && a.debug_pools && !a.help && !a.version);
    assert_eq!((a.memory_mb, a.file_prefix.as_deref(), a.log_level), (Some(256), Some("x"), Some(Level::Debug)));
    assert_eq!(a.wraps, [("net_null1".to_owned(), "trace,n=1".to_owned())]);
    assert_eq!(a.ignored, ["-n 4"]);
    assert_eq!(a.ignored_text().unwrap(), "without effect here: -n 4");
}

#[test]
fn no_option_asks_for_nothing() {
    assert_eq!(parse("l2fwd").unwrap(), (EalArgs::default(), 1));
    assert_eq!(parse("").unwrap(), (EalArgs::default(), 0));
    assert_eq!(ok("l2fwd --").ignored_text(), None);
}

#[test]
fn options_end_at_two_dashes_or_at_the_first_other_word() {
    for (line, at) in [("p -v -- -x", 3), ("p --", 2), ("p file -v", 1), ("p -v - -x", 2), ("p -l 1 file", 3)] {
        assert_eq!(parse(line).unwrap().1, at, "{line}");
    }
}

#[test]
fn a_value_may_be_glued_follow_or_stand_behind_an_equal_sign() {
    for line in ["p -l2", "p -l 2", "p -l=2", "p --lcores 2", "p --lcores=2", "p -c4", "p -c 0x4"] {
        assert_eq!(lcores(&ok(line)), [2], "{line}");
    }
}

#[test]
fn pci_addresses_are_written_in_full() {
    let a = ok("p -a 03:00.1 --allow=0000:03:00.1 -a 10000:AF:1f.7,x=1,y -w 0:1:2.3");
    assert_eq!(a.allow, ["0000:03:00.1", "10000:af:1f.7", "0000:01:02.3"]);
    assert_eq!(a.pci_args.len(), 1);
    assert_eq!(a.pci_args[0].name, "10000:af:1f.7");
    assert_eq!(a.pci_args[0].number("x", 0..=9).unwrap(), Some(1));
    assert_eq!(ok("p -b 3:0.0 --block 0000:03:00.0").block, ["0000:03:00.0"]);
}

#[test]
fn log_levels_have_dpdks_forms() {
    use Level::{Debug, Error, Info, Warn};
    for (line, level) in [
        ("p --log-level 1", Some(Error)),
        ("p --log-level 4", Some(Error)),
        ("p --log-level warning", Some(Warn)),
        ("p --log-level=7", Some(Info)),
        ("p --log-level 8", Some(Debug)),
        ("p --log-level=lib.eal:debug", Some(Debug)),
        ("p --log-level=pmd.net.*,8", Some(Debug)),
        ("p --log-level=lib.eal:error", None),
        ("p --log-level=*:error", Some(Error)),
        ("p --log-level=error --log-level=lib.eal:warning", Some(Warn)),
        ("p --log-level=8 --log-level=5", Some(Warn)),
    ] {
        assert_eq!(ok(line).log_level, level, "{line}");
    }
    assert!(ok("p --log-level=lib.eal:debug").ignored_text().unwrap().contains("lib.eal"));
}

#[test]
fn what_means_nothing_here_is_accepted_with_its_arity() {
    let a = ok("p -n4 -r 2 --socket-mem 1024,0 --socket-limit=1 --huge-dir /mnt --huge-unlink --huge-unlink=never \
                --proc-type primary --proc-type=auto --iova-mode va --no-telemetry --telemetry --legacy-mem \
                --single-file-segments --match-allocations --vfio-intr msix --base-virtaddr 0x1 --create-uio-dev \
                --no-hpet --no-shconf --syslog daemon --syslog -d x.so --vmware-tsc-map --force-max-simd-bitwidth 256 \
                --no-pci");
    assert!(a.no_pci);
    assert_eq!(a.ignored.len(), 25);
    assert_eq!(a.ignored[..4], ["-n 4", "-r 2", "--socket-mem 1024,0", "--socket-limit 1"]);
}

#[test]
fn help_names_every_option_and_ends_the_reading() {
    let (a, at) = parse("p -h --no-such -- x").unwrap();
    assert!(a.help);
    assert_eq!(at, 2);
    assert!(ok("p --version --no-pci").version);
    let usage = EalArgs::usage();
    for o in OPTIONS {
        for name in o.names {
            let lines = usage.lines().filter(|l| l.split([' ', ',', '[']).any(|w| w == *name)).count();
            assert!(lines >= 1, "{name} is missing:\n{usage}");
            assert_eq!(find(name).unwrap().0.names, o.names, "{name} stands twice in the table");
        }
    }
}

#[test]
fn bad_input_is_refused_with_option_value_and_limit() {
    for (line, says) in [
        ("p --vdve x", "unknown EAL option '--vdve', did you mean '--vdev'? (--help"),
        ("p -vdev=net_null0", "unknown EAL option '-vdev', did you mean '--vdev'?"),
        ("p -vx", "-v takes no value, found 'x'"),
        ("p -lcores=1", "unknown EAL option '-lcores', did you mean '--lcores'?"),
        ("p -lx", "-l 'x': expected an lcore number"),
        ("p -p 3", "unknown EAL option '-p' (--help lists them; options of the program stand after --)"),
        ("p -é", "unknown EAL option '-é'"),
        ("p --nohuge", "did you mean '--no-huge'?"),
        ("p -l", "-l needs a value, and nothing follows it"),
        ("p -n --vdev net_null0", "-n needs a value, and '--vdev' follows it"),
        ("p --vdev --", "--vdev needs a value, and '--' follows it"),
        ("p --vdev=", "--vdev needs a value, and it is empty"),
        ("p --no-huge=1", "--no-huge takes no value, found '1'"),
        ("p -l 0,9", "-l: CPU 9 not there or not allowed for this process (allowed: 0-7)"),
        ("p -l 128", "-l '128': lcore 128, limit 127"),
        ("p -c 0x300", "-c: CPU 8-9 not there"),
        ("p --lcores 0@8", "--lcores: CPU 8 not there"),
        ("p -l 0 -c 1", "-c: the cores are given already by -l"),
        ("p -l 0-2 --main-lcore 3", "--main-lcore 3 is not among the lcores 0-2"),
        ("p --main-lcore 8", "--main-lcore: CPU 8 not there"),
        ("p --main-lcore 128", "--main-lcore 128 is outside 0 to 127"),
        ("p --main-lcore x", "--main-lcore 'x' is no number (0 to 127)"),
        ("p -m 0", "-m 0 is outside 1 to 1048576"),
        ("p -m 99999999999999999999", "-m 99999999999999999999 is outside 1 to"),
        ("p -m 1G", "-m '1G' is no number"),
        ("p --vdev 0", "--vdev: 0: no driver name"),
        ("p --vdev net_null0,=", "--vdev: net_null0: '' is no key"),
        ("p -a 00:20.0", "-a '00:20.0': device 0x20, limit 0x1f"),
        ("p -a 00:1f.8", "-a '00:1f.8': function 0x8, limit 7"),
        ("p -a eth0", "-a 'eth0' is no PCI address"),
        ("p -b 0:0:0:0.0", "-b '0:0:0:0.0' is no PCI address"),
        ("p -b +1:00.0", "-b '+1:00.0' is no PCI address"),
        ("p -a 0:0.0 -b 0:1.0", "exclude each other"),
        ("p --file-prefix a/b", "--file-prefix: a/b: '/'"),
        ("p --log-level 9", "--log-level '9': '9' is no level (1-8, or emergency, alert"),
        ("p --log-level a:b:loud", "'loud' is no level"),
        ("p --log-level :debug", "no pattern before the level"),
        ("p --wrap net_null0", "--wrap 'net_null0' is not NAME,SPEC"),
        ("p --wrap ,x", "is not NAME,SPEC"),
        ("p --wrap a/b,x", "--wrap: a/b: '/'"),
        ("p --proc-type third", "--proc-type 'third' is none of primary, auto"),
    ] {
        let e = parse(line).unwrap_err();
        assert!(e.text().contains(says), "{line}: {e}");
        assert_eq!(e.errno(), Errno::INVAL, "{line}");
    }
}

#[test]
fn a_second_device_of_one_name_and_a_second_process_have_their_own_errors() {
    let e = parse("p --vdev net_null0 --vdev net_null0,size=64").unwrap_err();
    assert_eq!((e.errno(), e.text()), (Errno::EXIST, "--vdev net_null0: there is a device of this name already"));
    let e = parse("p --proc-type=secondary").unwrap_err();
    assert_eq!(e.errno(), Errno::NOTSUP);
    assert!(e.text().contains("net_ring") && e.text().contains("net_tap"), "{e}");
}

#[test]
fn this_machines_cpus_are_what_parse_allows() {
    let first = allowed_cpus()[0];
    let line = words(&format!("p --lcores 0@{first} -- x"));
    assert_eq!(EalArgs::parse(&line).unwrap().0.lcores.unwrap()[0].cpus, [first]);
}

proptest! {
    #[test]
    fn no_line_makes_the_parser_panic(
        picks in prop::collection::vec((0..OPTIONS.len(), any::<bool>(), "[0-9a-f@,()\\-:.=*x\\PC]{0,12}"), 0..8),
        junk in prop::collection::vec("-{0,2}\\PC{0,12}", 0..6),
    ) {
        let mut line = vec!["p".to_owned()];
        for (pick, glue, value) in picks {
            let name = OPTIONS[pick].names[0];
            if glue {
                line.push(format!("{name}={value}"));
            } else {
                line.extend([name.to_owned(), value]);
            }
        }
        for line in [line, junk] {
            if let Ok((args, at)) = EalArgs::parse_on(&line, &[0, 1]) {
                prop_assert!(at <= line.len());
                prop_assert!(args.lcores.is_none_or(|l| !l.is_empty()));
            }
        }
    }
}
