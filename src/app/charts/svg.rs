//! Formats an SVG file.

use plotters_backend::BackendColor;

use crate::state::quote;

/// SVG units per CSS pixel: plotters uses integer coordinates, which would be too coarse when a file is enlarged.
pub const RATIO: f64 = 8.0;

/// Formats a colour as CSS.
pub fn rgba(color: BackendColor) -> String {
    let (r, g, b) = color.rgb;
    if color.alpha >= 1.0 {
        return format!("#{r:02x}{g:02x}{b:02x}");
    }
    format!("rgba({r},{g},{b},{:.3})", color.alpha)
}

/// Escapes text for XML, which does not allow control characters.
pub fn escaped(text: &str) -> String {
    quote(&text.replace(char::is_control, " ")).replace('>', "&gt;")
}

/// Builds a complete file: `body`, drawn with [`RATIO`], on a background of `width` × `height` CSS pixels.
pub fn file(width: f64, height: f64, title: &str, ground: &str, faces: &str, body: &str) -> String {
    let (title, faces) = (escaped(title), escaped(faces));
    let (w, h) = (width * RATIO, height * RATIO);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {w} {h}\" font-family=\"{faces}\"><title>{title}</title><rect \
         width=\"{w}\" height=\"{h}\" fill=\"{ground}\"/>{body}</svg>\n"
    )
}
