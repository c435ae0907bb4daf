import { COMPOUND_TYPES, FLAT_TYPES, OUTLOOK_TYPE, SVG_TYPE, ZIP_TYPES } from './media.ts'

/**
 * File extensions by media type, the usual one first. A title with another extension gets the usual one, too. `*` accepts
 * any: many kinds of files have the type. Omits types that do not determine an extension.
 */
const EXTENSIONS_BY_TYPE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'application/pdf': 'pdf',
    'application/rtf': 'rtf doc',
    'application/xml': 'xml *',
    'application/gzip': 'gz *',
    'application/x-7z-compressed': '7z *',
    'application/x-rar-compressed': 'rar *',
    'application/x-tar': 'tar *',
    [SVG_TYPE]: 'svg',
    ...Object.fromEntries(COMPOUND_TYPES.map(([, extension, mediaType]) => [mediaType, extension])),
    [OUTLOOK_TYPE]: 'msg oft',
    ...Object.fromEntries(
      Object.values(FLAT_TYPES).map((mediaType, n) => [mediaType, ['fodt', 'fods', 'fodp', 'fodg'][n]!]),
    ),
    ...Object.fromEntries(Object.entries(ZIP_TYPES).map(([extension, mediaType]) => [mediaType, extension])),
    'application/vnd.visio': 'vsdx vsd vsdm vstx vstm vssx vssm',
    // The first bytes of Pages and Keynote may look like those of Numbers.
    'application/vnd.apple.numbers': 'numbers pages key',
    'application/zip': 'zip *',
    'audio/aac': 'aac',
    'audio/flac': 'flac',
    'audio/mp4': 'm4a mp4',
    'audio/mpeg': 'mp3 mp2 mpga',
    'audio/ogg': 'ogg oga opus spx',
    'audio/ogg; codecs=opus': 'opus ogg oga',
    'audio/wav': 'wav wave',
    'audio/x-m4a': 'm4a mp4',
    'image/avif': 'avif',
    'image/bmp': 'bmp dib',
    'image/gif': 'gif',
    'image/heic': 'heic heif',
    'image/heif': 'heif heic',
    'image/j2c': 'j2k j2c jpc',
    'image/jp2': 'jp2',
    'image/jpeg': 'jpg jpeg jpe jfif',
    'image/jxl': 'jxl',
    'image/jpx': 'jpx jpf jp2',
    'image/png': 'png',
    'image/tiff': 'tif tiff',
    'image/vnd.adobe.photoshop': 'psd psb',
    'image/vnd.zbrush.pcx': 'pcx',
    'image/webp': 'webp',
    'image/x-portable-anymap': 'pnm pbm pgm ppm pam',
    'message/rfc822': 'eml mht mhtml',
    'text/calendar': 'ics ical ifb',
    'text/html': 'html *',
    'text/markdown': 'md *',
    'text/plain': 'txt *',
    'text/vcard': 'vcf vcard',
    'text/vtt': 'vtt',
    'video/mp4': 'mp4 m4v m4a',
    'video/quicktime': 'mov qt',
    'video/webm': 'webm',
  }),
)

// Matches a file extension. Extensions in mixed case do not count: `Minutes of Mr.Smith` has none.
const EXTENSION_PATTERN = /\.([a-z][a-z\d]{0,7}|[A-Z][A-Z\d]{0,7})$/

/** Returns a file name for a document: its title, plus the extension of its media type unless the title has one. */
export function buildDocumentFileName(title: string, mediaType: string): string {
  const [usual, ...others] = EXTENSIONS_BY_TYPE.get(mediaType)?.split(' ') ?? []
  const own = findExtension(title)
  const fits = own !== null && (others.includes('*') || own === usual || others.includes(own))
  return usual === undefined || fits ? title : `${title}.${usual}`
}

/** Returns the extension of a name in lower case; null if it has none. */
export const findExtension = (name: string): string | null =>
  EXTENSION_PATTERN.exec(name)?.[1]?.toLowerCase() ?? null

// These characters reverse what follows, so that `\u202efdp.exe` looks like `exe.pdf`.
const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Removes characters that change the direction of a name, which would look like another one. */
export const removeBidiControls = (name: string): string => name.replace(BIDI_CONTROLS, '')
