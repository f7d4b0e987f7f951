//! Checked views of protocol headers. No unsafe.
