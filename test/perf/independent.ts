import { openZip } from '../../tasks/formats/zip.ts'
import { isInstalled, runProgram } from './native.ts'

/** Reads the text of files by other means than the service, to compare its results with. */

const MAX_PART_BYTES = 64 * 2 ** 20
// The parts of an office file that hold text, and the elements with text in them; null for all elements.
const TEXT_PARTS: readonly (readonly [part: RegExp, elements: readonly string[] | null])[] = [
  [/^word\/(document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml$/, ['t']],
  [/^ppt\/(slides|notesSlides|comments)\/[^/]+\.xml$/, ['t', 'text']],
  [/^xl\/(sharedStrings|comments\d*|drawings\/[^/]+)\.xml$/, ['t']],
  [/^content\.xml$/, null],
]

/**
 * Returns the words of a file as an independent reader finds them. Reads a PDF with pdftotext, or with pdfjs if that is
 * not installed, and the text nodes of the parts of an office file. Null for other files, and for those that the reader
 * rejects.
 */
export async function readIndependently(path: string, bytes: Buffer): Promise<string | null> {
  if (bytes.subarray(0, 1024).includes('%PDF-')) return readPdf(path, bytes)
  if (bytes.subarray(0, 4).toString('latin1') === 'PK\x03\x04') return readOffice(bytes).catch(() => null)
  return null
}

async function readPdf(path: string, bytes: Buffer): Promise<string | null> {
  if (isInstalled('pdftotext')) return runProgram('pdftotext', [path, '-'])?.output ?? null
  const { getDocument } = await import('pdfjs-dist/legacy/build/pdf.mjs')
  const task = getDocument({ data: new Uint8Array(bytes), verbosity: 0 })
  try {
    const pdf = await task.promise
    const lines: string[] = []
    for (let n = 1; n <= pdf.numPages; n++) {
      const { items } = await (await pdf.getPage(n)).getTextContent()
      for (const item of items) if ('str' in item) lines.push(item.hasEOL ? `${item.str}\n` : item.str)
    }
    return lines.join('')
  } catch {
    return null
  } finally {
    await task.destroy()
  }
}

async function readOffice(bytes: Buffer): Promise<string | null> {
  const rules = { createError: (reason: string) => new Error(reason), isTextOnly: false }
  const texts: string[] = []
  for (const { path, read } of await openZip(bytes, rules)) {
    const known = TEXT_PARTS.find(([part]) => part.test(path))
    if (known !== undefined)
      texts.push(listTextNodes((await read(MAX_PART_BYTES))?.toString() ?? '', known[1]))
  }
  return texts.length === 0 ? null : texts.join('\n')
}

/** Joins the text of elements. The text of adjacent runs is one word, as an office program shows it. */
function listTextNodes(xml: string, elements: readonly string[] | null): string {
  let text = ''
  let name = ''
  for (const [, tag, isEnd, local, data] of xml.matchAll(/(<(\/?)(?:[\w.-]+:)?([\w.-]+)[^>]*>)|([^<]+)/g)) {
    if (tag === undefined) {
      if (elements === null || elements.includes(name)) text += decodeEntities(data!)
    } else {
      name = isEnd === '/' || tag.endsWith('/>') ? '' : local!
      if (/^(p|h|tab|br|s|cr|line-break|si|tc|table-cell)$/.test(local!)) text += ' '
    }
  }
  return text
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

const decodeEntities = (text: string): string =>
  text.replace(/&(?:#x([\da-f]+)|#(\d+)|(\w+));/gi, (all, hex, decimal, named) =>
    named !== undefined
      ? (ENTITIES[named] ?? all)
      : String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)),
  )
