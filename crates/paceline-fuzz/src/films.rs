//! The sizes of the pictures of recorded films.

use paceline_media::codec::Codec;
use std::path::Path;
use std::sync::Arc;

/// Returns the sizes of the pictures of all H.264 files of the folder `video` in `PACELINE_DATA`, in order of their names.
///
/// Returns `None` without that variable, or without such files of at least two pictures.
#[must_use]
pub fn recorded_films() -> Option<Vec<Arc<[u64]>>> {
    let folder = std::env::var_os("PACELINE_DATA")?;
    let files = std::fs::read_dir(Path::new(&folder).join("video")).ok()?;
    let mut files: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    files.sort();
    let h264 = files.iter().filter(|file| file.extension().is_some_and(|it| it == "264"));
    let films = h264.filter_map(|file| Some(picture_sizes(&std::fs::read(file).ok()?)));
    let films: Vec<_> = films.filter(|film| film.len() > 1).collect();
    (!films.is_empty()).then_some(films)
}

/// Returns the sizes of the pictures of an H.264 stream, up to the first that cannot be read.
#[must_use]
pub fn picture_sizes(stream: &[u8]) -> Arc<[u64]> {
    let pictures = Codec::H264.split(stream);
    pictures.map_while(|unit| Some(unit.ok()?.bytes.len() as u64)).collect()
}
