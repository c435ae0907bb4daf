// Names of file types, for people who do not know media types.

const NAMES = {
  'application/pdf': 'PDF',
  'application/msword': 'Word',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'Word',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'Excel',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'PowerPoint',
  'application/vnd.ms-excel': 'Excel',
  'application/vnd.ms-powerpoint': 'PowerPoint',
  'application/vnd.ms-outlook': 'Email',
  'application/vnd.oasis.opendocument.text': 'OpenDocument text',
  'application/vnd.oasis.opendocument.spreadsheet': 'OpenDocument sheet',
  'application/vnd.oasis.opendocument.presentation': 'OpenDocument slides',
  'application/rtf': 'RTF',
  'text/rtf': 'RTF',
  'application/epub+zip': 'EPUB',
  'application/mbox': 'Mailbox',
  'message/rfc822': 'Email',
  'text/plain': 'Text',
  'text/markdown': 'Markdown',
  'text/html': 'Web page',
  'text/csv': 'CSV',
  'text/calendar': 'Calendar',
  'text/vcard': 'Address card',
  'application/xml': 'XML',
  'application/json': 'JSON',
  'application/octet-stream': 'Unknown',
}

const GROUPS = { text: 'Text', audio: 'Audio', video: 'Video', message: 'Email' }

/** Returns the name of a media type, such as `PDF`, `Word` or `JPEG image`. */
export function nameType(mediaType) {
  if (NAMES[mediaType] !== undefined) return NAMES[mediaType]
  const [group, kind = ''] = mediaType.split('/')
  if (group === 'image') return `${kind.replace(/^x-|^vnd\.|\+xml$/g, '').toUpperCase()} image`
  return GROUPS[group] ?? 'Other file'
}

export const ACCEPTED = 'PDF, images, Office and OpenDocument files, emails, EPUB, web pages, Markdown, CSV and other texts'
