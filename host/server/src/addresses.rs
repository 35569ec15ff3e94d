//! How many connections each address has: one machine must not take all places.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// What part of all connections another machine may have.
const PART: usize = 4;

/// Connections by address. There are never more entries than connections.
#[derive(Clone)]
pub(crate) struct Addresses {
    /// `None`: a part of all, but for this machine.
    limit: Option<usize>,
    usual: usize,
    counts: Arc<Mutex<HashMap<u128, usize>>>,
}

/// Who stands behind an address: whoever has one of IPv6 has a network of them.
pub(crate) fn network_of(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address) >> 64 << 64,
    }
}

impl Addresses {
    /// At most `limit` connections of each address; without one a part of `all`, and no bound for
    /// this machine.
    pub(crate) fn new(limit: Option<usize>, all: usize) -> Self {
        Self {
            limit,
            usual: (all / PART).max(1),
            counts: Arc::default(),
        }
    }

    /// A place for one connection of an address, until it is dropped; `None` inside where it is not
    /// counted, and outside when it has too many.
    pub(crate) fn take(&self, address: IpAddr) -> Option<Option<AddressPlace>> {
        let address = address.to_canonical();
        if self.limit.is_none() && address.is_loopback() {
            return Some(None);
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let network = network_of(address);
        let count = counts.entry(network).or_default();
        if *count >= self.limit.unwrap_or(self.usual) {
            return None;
        }
        *count += 1;
        Some(Some(AddressPlace {
            addresses: self.clone(),
            network,
        }))
    }
}

/// One connection of an address.
pub(crate) struct AddressPlace {
    addresses: Addresses,
    network: u128,
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let counts = &self.addresses.counts;
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_has_its_part_and_gives_it_back() {
        let addresses = Addresses::new(None, 8);
        let one = address("192.0.2.1");
        let first = addresses.take(one).expect("a place");
        let _second = addresses.take(one).expect("a place");
        assert!(addresses.take(one).is_none());
        assert!(addresses.take(address("192.0.2.2")).is_some());
        assert!(addresses.take(address("::ffff:192.0.2.1")).is_none());
        drop(first);
        assert!(addresses.take(one).is_some());
        for _ in 0..100 {
            assert!(
                addresses
                    .take(address("127.0.0.1"))
                    .is_some_and(|it| it.is_none())
            );
        }
    }

    #[test]
    fn a_network_of_addresses_has_the_part_of_one() {
        let addresses = Addresses::new(None, 8);
        let _first = addresses.take(address("2001:db8::1")).expect("a place");
        let _second = addresses
            .take(address("2001:db8::ffff:2"))
            .expect("a place");
        assert!(addresses.take(address("2001:db8::3")).is_none());
        assert!(addresses.take(address("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn a_limit_that_is_set_holds_for_this_machine_too() {
        let addresses = Addresses::new(Some(1), 8);
        let held = addresses.take(address("::1")).expect("a place");
        assert!(addresses.take(address("::1")).is_none());
        drop(held);
        let counts = addresses.counts.lock().expect("no panic");
        assert!(counts.is_empty());
    }
}
