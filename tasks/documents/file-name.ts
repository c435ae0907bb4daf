/** The endings by which systems know what a file is; of the others, nobody can tell from the type alone. */
const ENDINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'application/epub+zip': 'epub',
    'application/pdf': 'pdf',
    'application/rtf': 'rtf',
    'application/vnd.ms-outlook': 'msg',
    'application/vnd.oasis.opendocument.presentation': 'odp',
    'application/vnd.oasis.opendocument.spreadsheet': 'ods',
    'application/vnd.oasis.opendocument.text': 'odt',
    'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
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

/** What a document is called as a file: its title, with the ending of what it is unless it has one already. */
export function titledFile(title: string, mediaType: string): string {
  const ending = ENDINGS.get(mediaType)
  return ending === undefined || /\.[a-z][a-z\d]{0,7}$/i.test(title) ? title : `${title}.${ending}`
}
