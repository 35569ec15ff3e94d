//! A good component of another world: it exports `acme:weather/forecast` and no handler.
//!
//! Refused at load: it fits no style.

wit_bindgen::generate!({
    inline: "
        package acme:weather@1.0.0;
        interface forecast { tomorrow: func(place: string) -> string; }
        world station { export forecast; }
    ",
});

struct Station;

impl exports::acme::weather::forecast::Guest for Station {
    fn tomorrow(place: String) -> String {
        format!("sunny in {place}")
    }
}

export!(Station);
