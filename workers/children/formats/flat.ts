import { parseMarkup } from '../../../tasks/formats/markup.ts'
import { decodeXml } from '../documents/texts.ts'
import { Archive } from './archive.ts'
import { stripNamespacePrefix } from './xml.ts'

/** Recognizes office documents that consist of a single XML file. */

/** A flat format: that of Word 2003, of Excel 2003, of all Office programs since, or of OpenDocument. */
export type FlatFormat = 'word' | 'workbook' | 'package' | 'open-document'

const ROOTS: readonly (readonly [name: string, namespace: RegExp, FlatFormat])[] = [
  ['wordDocument', /^http:\/\/schemas\.microsoft\.com\/office\/word\/2003\/wordml$/, 'word'],
  ['Workbook', /^urn:schemas-microsoft-com:office:spreadsheet$/, 'workbook'],
  ['package', /^http:\/\/schemas\.microsoft\.com\/office\/2006\/xmlPackage$/, 'package'],
  ['document', /^urn:oasis:names:tc:opendocument:xmlns:office:1\.0$/, 'open-document'],
]

// The root of an OpenDocument file declares some 30 namespaces.
const ROOT_BYTES = 16_384

/** Returns the format by the root element and its namespace; null for other XML. */
export function findFlatFormat(bytes: Uint8Array): FlatFormat | null {
  let format: FlatFormat | null | undefined
  parseMarkup(decodeXml(bytes.subarray(0, ROOT_BYTES)), 'xml', {
    open(qualified, attributes) {
      if (format !== undefined) return
      const name = stripNamespacePrefix(qualified)
      const prefix = qualified.slice(0, -name.length).replace(':', '')
      const namespace = attributes[prefix === '' ? 'xmlns' : `xmlns:${prefix}`] ?? ''
      format = ROOTS.find(([root, pattern]) => root === name && pattern.test(namespace))?.[2] ?? null
    },
  })
  return format ?? null
}

/** Reads the parts of a package that is one XML file (Flat OPC). */
export function readFlatPackage(bytes: Uint8Array): Archive {
  const xml = decodeXml(bytes)
  const parts = new Map<string, Buffer>()
  const types: string[] = []
  let path = ''
  let from: number | null = null
  parseMarkup(xml, 'xml', {
    open(qualified, attributes, at) {
      const name = stripNamespacePrefix(qualified)
      if (name === 'part') {
        const find = (wanted: string): string =>
          Object.entries(attributes).find(([key]) => stripNamespacePrefix(key) === wanted)?.[1] ?? ''
        path = find('name').replace(/^\//, '')
        types.push(
          `<Override PartName="/${escapeXml(path)}" ContentType="${escapeXml(find('contentType'))}"/>`,
        )
      } else if (name === 'xmlData' && from === null) from = xml.indexOf('>', at) + 1
    },
    close(qualified, at) {
      if (stripNamespacePrefix(qualified) !== 'xmlData' || from === null) return
      parts.set(path, Buffer.from(xml.slice(from, Math.max(from, at))))
      from = null
    },
  })
  parts.set('[Content_Types].xml', Buffer.from(`<Types>${types.join('')}</Types>`))
  return Archive.of(parts)
}

const escapeXml = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
