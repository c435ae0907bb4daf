import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { sniffMediaType } from '../../tasks/documents/media.ts'
import { openPages } from '../../workers/children/documents/pages.ts'
import { createRunOptions } from '../runs.ts'
import { createZip } from '../zip.ts'

/** Reading a document reads each of its parts once, however often the document references it. */

const MAIN_RELATIONS =
  '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="m.xml"/></Relationships>'
const createRelations = (...all: readonly (readonly [id: string, type: string, target: string])[]): string =>
  `<Relationships>${all.map(([id, type, target]) => `<Relationship Id="${id}" Type="x/${type}" Target="${target}"/>`).join('')}</Relationships>`

/** Returns the name of part `n`, in either case, because names of parts are case-insensitive. */
const nameOf = (n: number): string => (n % 2 === 0 ? `p${n}.xml` : `P${n}.XML`)
const textOf = (n: number): string => `word${n}word`

/** Builders by file name. `named` lists the parts that the document references, in order of reference. */
const FORMATS: Readonly<Record<string, (parts: number, named: readonly number[]) => Buffer>> = {
  'a.epub': (parts, named) =>
    createZip([
      ['mimetype', 'application/epub+zip'],
      ['META-INF/container.xml', '<container><rootfile full-path="b.opf"/></container>'],
      [
        'b.opf',
        `<package>${named.map((n, i) => `<item id="i${i}" href="${nameOf(n)}"/><itemref idref="i${i}"/><itemref idref="i${i}"/>`).join('')}</package>`,
      ],
      ...createParts(parts, (n) => `<html><body><p>${textOf(n)}</p></body></html>`),
    ]),
  'a.pptx': (parts, named) =>
    createZip([
      ['[Content_Types].xml', '<Types>presentationml.presentation.main+xml</Types>'],
      ['_rels/.rels', MAIN_RELATIONS.replace('m.xml', 'ppt/m.xml')],
      ['ppt/m.xml', `<p>${named.map((_, i) => `<sldId r:id="s${i}"/><sldId r:id="s${i}"/>`).join('')}</p>`],
      [
        'ppt/_rels/m.xml.rels',
        createRelations(...named.map((n, i) => [`s${i}`, 'slide', nameOf(n)] as const)),
      ],
      ...createParts(parts, (n) => `<s><t>${textOf(n)}</t></s>`, 'ppt/'),
      // The notes of each slide reference all parts in `named`.
      ...Array.from(
        { length: parts },
        (_, n) =>
          [
            `ppt/_rels/p${n}.xml.rels`,
            createRelations(...named.map((m, i) => [`n${i}`, 'notesSlide', nameOf(m)] as const)),
          ] as const,
      ),
    ]),
  'a.xlsx': (parts, named) =>
    createZip([
      ['[Content_Types].xml', '<Types>spreadsheetml.sheet.main+xml</Types>'],
      ['_rels/.rels', MAIN_RELATIONS.replace('m.xml', 'xl/m.xml')],
      ['xl/m.xml', `<w>${named.map((_, i) => `<sheet name="S${i}" r:id="s${i}"/>`).join('')}</w>`],
      [
        'xl/_rels/m.xml.rels',
        createRelations(...named.map((n, i) => [`s${i}`, 'worksheet', nameOf(n)] as const)),
      ],
      ...createParts(parts, (n) => `<d><row><c t="str"><v>${textOf(n)}</v></c></row></d>`, 'xl/'),
    ]),
  'a.docx': (parts, named) =>
    createZip([
      ['[Content_Types].xml', '<Types>wordprocessingml.document.main+xml</Types>'],
      ['_rels/.rels', MAIN_RELATIONS.replace('m.xml', 'word/m.xml')],
      ['word/m.xml', '<d><p><t>main</t></p></d>'],
      [
        'word/_rels/m.xml.rels',
        createRelations(
          ...named.map((n, i) => [`r${i}`, ['header', 'footnotes', 'footer'][n % 3]!, nameOf(n)] as const),
        ),
      ],
      ...createParts(parts, (n) => `<d><p><t>${textOf(n)}</t></p></d>`, 'word/'),
    ]),
}

const createParts = (count: number, text: (n: number) => string, folder = '') =>
  Array.from({ length: count }, (_, n) => [`${folder}p${n}.xml`, text(n)] as const)

async function readTexts(bytes: Buffer, fileName: string): Promise<string[]> {
  const mediaType = await sniffMediaType(bytes, { fileName })
  const reader = await openPages(new Uint8Array(bytes), mediaType, { ocrMode: 'none' })
  const texts: string[] = []
  for (let n = 1; n <= reader.pageCount; n++) texts.push((await reader.read(n)).text)
  assert.ok(reader.unpackedBytes > 0)
  await reader.close()
  return texts
}

describe('parts with random references', () => {
  for (const [fileName, make] of Object.entries(FORMATS))
    test(`each is read once in ${fileName}`, async () => {
      const references = fc
        .integer({ min: 1, max: 6 })
        .chain((parts) =>
          fc.tuple(fc.constant(parts), fc.array(fc.nat(parts - 1), { minLength: 1, maxLength: 30 })),
        )
      await fc.assert(
        fc.asyncProperty(references, async ([parts, named]) => {
          const text = (await readTexts(make(parts, named), fileName)).join('\n')
          for (let n = 0; n < parts; n++) {
            const times = text.split(textOf(n)).length - 1
            assert.equal(times, named.includes(n) ? 1 : 0, `part ${n}`)
          }
        }),
        createRunOptions(),
      )
    })

  test('a sheet repeats a shared string in each of its cells, up to the page limit', async () => {
    const word = 'x'.repeat(300_000)
    const bytes = createZip([
      ['[Content_Types].xml', '<Types>spreadsheetml.sheet.main+xml</Types>'],
      ['_rels/.rels', MAIN_RELATIONS.replace('m.xml', 'xl/m.xml')],
      ['xl/m.xml', '<w><sheet name="S" r:id="s"/></w>'],
      ['xl/_rels/m.xml.rels', createRelations(['s', 'worksheet', 's.xml'], ['t', 'sharedStrings', 't.xml'])],
      ['xl/t.xml', `<sst><si><t>${word}</t></si></sst>`],
      ['xl/s.xml', `<d><row>${'<c t="s"><v>0</v></c>'.repeat(100_000)}</row></d>`],
    ])
    const before = process.cpuUsage()
    const [text] = await readTexts(bytes, 'a.xlsx')
    assert.equal(text!.length, 2_000_000)
    // Converting the shared string once per cell would take 100,000 times 0.1 ms.
    assert.ok(process.cpuUsage(before).user < 5_000_000)
  })
})
