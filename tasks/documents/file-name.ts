import { COMPOUND_TYPES, FLAT_TYPES, ZIP_TYPES } from './media.ts'

/** File extensions by media type. Omits types that do not determine an extension. */
const EXTENSIONS_BY_TYPE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'application/pdf': 'pdf',
    'application/rtf': 'rtf',
    ...Object.fromEntries(COMPOUND_TYPES.map(([, extension, mediaType]) => [mediaType, extension])),
    ...Object.fromEntries(
      Object.values(FLAT_TYPES).map((mediaType, n) => [mediaType, ['fodt', 'fods', 'fodp', 'fodg'][n]!]),
    ),
    ...Object.fromEntries(Object.entries(ZIP_TYPES).map(([extension, mediaType]) => [mediaType, extension])),
    'application/zip': 'zip',
    'audio/mpeg': 'mp3',
    'audio/wav': 'wav',
    'image/gif': 'gif',
    'image/heic': 'heic',
    'image/jpeg': 'jpg',
    'image/png': 'png',
    'image/tiff': 'tif',
    'image/webp': 'webp',
    'message/rfc822': 'eml',
    'text/html': 'html',
    'text/markdown': 'md',
    'text/plain': 'txt',
    'video/mp4': 'mp4',
  }),
)

// Matches a file extension. Extensions in mixed case do not count: `Minutes of Mr.Smith` has none.
const EXTENSION_PATTERN = /\.([a-z][a-z\d]{0,7}|[A-Z][A-Z\d]{0,7})$/

/** Returns a file name for a document: its title, plus the extension of its media type unless the title has one. */
export function buildDocumentFileName(title: string, mediaType: string): string {
  const extension = EXTENSIONS_BY_TYPE.get(mediaType)
  return extension === undefined || EXTENSION_PATTERN.test(title) ? title : `${title}.${extension}`
}
