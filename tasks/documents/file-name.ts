import { OUTLOOK, ZIPPED } from './media.ts'

/** The endings by which systems know what a file is; of the others, nobody can tell from the type alone. */
const ENDINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'application/pdf': 'pdf',
    'application/rtf': 'rtf',
    [OUTLOOK]: 'msg',
    ...Object.fromEntries(Object.entries(ZIPPED).map(([ending, mediaType]) => [mediaType, ending])),
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

// In one case: `Minutes of Mr.Smith` has none.
const ENDING = /\.([a-z][a-z\d]{0,7}|[A-Z][A-Z\d]{0,7})$/

/** What a document is called as a file: its title, with the ending of what it is unless it has one already. */
export function titledFile(title: string, mediaType: string): string {
  const ending = ENDINGS.get(mediaType)
  return ending === undefined || ENDING.test(title) ? title : `${title}.${ending}`
}
