//! Lease tokens as text.

use oncue_core::unit_of_work::LeaseToken;

/// Digits of a token.
const DIGITS: usize = 32;

/// Writes a token: 32 lower-case hexadecimal digits.
pub(crate) fn write(token: LeaseToken) -> String {
    format!("{:032x}", token.0)
}

/// Reads a token.
///
/// # Errors
/// The fact and the cure.
pub(crate) fn read(text: &str) -> Result<LeaseToken, String> {
    let plain = text.len() == DIGITS
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    u128::from_str_radix(text, 16)
        .ok()
        .filter(|_| plain)
        .map(LeaseToken)
        .ok_or_else(|| format!("is not {DIGITS} hexadecimal digits; copy it from the get's answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back() {
        for token in [0, 66, u128::MAX] {
            assert_eq!(read(&write(LeaseToken(token))), Ok(LeaseToken(token)));
        }
        let signed = format!("+{}", "0".repeat(31));
        for text in ["", "66", &"A".repeat(32), &signed, &"0".repeat(33)] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
