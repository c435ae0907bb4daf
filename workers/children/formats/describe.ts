import { buildDocumentFileName, findExtension } from '../../../tasks/documents/file-name.ts'

/** Says in plain words why a file has no pages to read. */

const KINDS: readonly (readonly [mediaType: RegExp, kind: string])[] = [
  [/^application\/x-cfb$/, 'Files of old office programs'],
  [/^application\/(zip|gzip|x-7z-compressed|x-rar-compressed|x-tar|x-bzip2|x-xz)$/, 'Archives'],
  [/^application\/vnd\.ms-htmlhelp$/, 'Help files'],
  [/^audio\//, 'Sound recordings'],
  [/^video\//, 'Films'],
  [/^image\//, 'Pictures of this kind'],
  [/^font\//, 'Fonts'],
  [/^application\/(x-msdownload|x-elf|x-mach-binary|vnd\.microsoft\.portable-executable)$/, 'Programs'],
]
const UNKNOWN_KIND = 'Files of an unknown kind'

const READABLE =
  'PDF, pictures (PNG, JPEG, TIFF, WebP, GIF, HEIC, JPEG XL), docx, doc, xlsx, xls, pptx, ppt, odt, ods, odp, odg, vsdx, RTF, EPUB, emails (eml, msg), web pages and all texts'

/** Returns the reason why a file cannot be read: its kind and ending, and what can be read instead. */
export function describeUnreadable(mediaType: string, fileName = ''): string {
  const kind = KINDS.find(([pattern]) => pattern.test(mediaType))?.[1] ?? UNKNOWN_KIND
  const ending = findExtension(fileName) ?? findExtension(buildDocumentFileName('', mediaType))
  return `${kind}${ending === null ? '' : ` (.${ending})`} cannot be read; readable are ${READABLE}`
}
