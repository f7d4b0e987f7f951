//! Rings of pointers, one synchronisation mode a file.
