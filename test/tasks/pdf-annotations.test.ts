import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openPages } from '../../workers/children/documents/pages.ts'
import { listPasswordForms } from '../../workers/children/pdf/passwords.ts'
import { buildEncryptedPdf, buildRawPdf, buildStreamObject } from '../pdfs.ts'

/** Parts of a PDF besides the content of its pages: form values, notes, layers and files. */

interface Parts {
  readonly content?: string
  /** Entries of the page, of its resources, and of the catalogue. */
  readonly page?: string
  readonly resources?: string
  readonly catalog?: string
  /** Objects from number 6 on. */
  readonly objects?: readonly (string | Uint8Array)[]
}

const FONT = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>'

const buildPdf = ({ content = '', page = '', resources = '', catalog = '', objects = [] }: Parts) =>
  buildRawPdf([
    `<< /Type /Catalog /Pages 2 0 R ${catalog} >>`,
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R ${page}
      /Resources << /Font << /F1 5 0 R >> ${resources} >> >>`,
    buildStreamObject(content),
    FONT,
    ...objects,
  ])

const write = (x: number, y: number, text: string): string => `BT /F1 12 Tf ${x} ${y} Td (${text}) Tj ET\n`

async function open(bytes: Uint8Array, password: string | null = null) {
  const reader = await openPages(bytes, 'application/pdf', { ocrMode: 'none', password })
  const page = await reader.read(1)
  const files: [string, string][] = []
  for (const file of reader.attachments) files.push([file.name, Buffer.from(await file.read()).toString()])
  await reader.close()
  return { ...page, files }
}

const readText = async (parts: Parts): Promise<string> => (await open(buildPdf(parts))).text

/** Returns a page with these annotations, and their appearances behind them. */
const annotate = (annotations: readonly string[], more: readonly (string | Uint8Array)[] = []) => ({
  page: `/Annots [${annotations.map((_, i) => `${6 + i} 0 R`).join(' ')}]`,
  objects: [...annotations.map((entries) => `<< /Type /Annot ${entries} >>`), ...more],
})

const form = (fields: string): string => `/AcroForm << /Fields [${fields}] >>`

const appearance = (text: string) =>
  buildStreamObject(
    `BT /F1 12 Tf 2 6 Td (${text}) Tj ET`,
    '/Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 5 0 R >> >>',
  )

describe('form values', () => {
  test('drawn values stand beside their labels, on their left, right or below', async () => {
    const fields = annotate(
      [
        '/Subtype /Widget /FT /Tx /T (a) /V (Walrus) /Rect [200 695 400 715] /F 4 /AP << /N 10 0 R >>',
        '/Subtype /Widget /FT /Tx /T (b) /V (Penguin) /Rect [200 655 400 675] /F 4 /AP << /N 11 0 R >>',
        '/Subtype /Widget /FT /Btn /T (c) /V /On /AS /On /Rect [72 615 84 627] /F 4',
        '/Subtype /Widget /FT /Tx /T (d) /V (Reykjavik) /Rect [72 560 272 580] /F 4',
      ],
      [appearance('Walrus'), appearance('Penguin')],
    )
    const content =
      write(72, 700, 'Name:') + write(72, 660, 'Animal:') + write(90, 618, 'I agree') + write(72, 585, 'City')
    assert.equal(
      await readText({ content, catalog: form('6 0 R 7 0 R 8 0 R 9 0 R'), ...fields }),
      'Name:\tWalrus\nAnimal:\tPenguin\n☑ I agree\nCity\nReykjavik',
    )
  })

  test('inherited values and the labels of choices are read; passwords and hidden fields are not', async () => {
    const fields = annotate(
      [
        '/Subtype /Widget /Parent 12 0 R /Rect [150 655 400 675] /F 4',
        '/Subtype /Widget /FT /Ch /Ff 131072 /T (b) /Opt [[(k1) (Penguin City)] [(k2) (Other)]] /V (k1) /Rect [150 600 300 620] /F 4',
        '/Subtype /Widget /FT /Ch /Ff 2097152 /T (c) /Opt [[(k1) (Red)] [(k2) (Green)] [(k3) (Blue)]] /V [(k1) (k3)] /Rect [150 540 300 580] /F 4',
        '/Subtype /Widget /FT /Tx /Ff 8192 /T (d) /V (secret) /Rect [150 500 300 520] /F 4',
        '/Subtype /Widget /FT /Tx /T (e) /V (unseen) /Rect [150 460 300 480] /F 2',
        '/Subtype /Widget /FT /Btn /T (f) /V /Off /AS /Off /Rect [150 420 162 432] /F 4',
      ],
      ['<< /FT /Tx /T (a) /V (Walrus Inherited) /Kids [6 0 R] >>'],
    )
    assert.equal(
      await readText({
        content: write(72, 660, 'Name:'),
        catalog: form('12 0 R 7 0 R 8 0 R 9 0 R 10 0 R 11 0 R'),
        ...fields,
      }),
      'Name:\tWalrus Inherited\nPenguin City\nRed\nBlue',
    )
  })

  test('a form without pages of its own is read from its template and data', async () => {
    const template =
      '<t:template xmlns:t="http://www.xfa.org/schema/xfa-template/3.3/"><t:subform><t:draw><t:value><t:text>Claim form</t:text></t:value></t:draw><t:field name="a"><t:caption><t:value><t:text>Name</t:text></t:value></t:caption></t:field><t:field name="h" presence="hidden"><t:caption><t:value><t:text>Unseen</t:text></t:value></t:caption></t:field></t:subform></t:template>'
    const data =
      '<xfa:datasets xmlns:xfa="http://www.xfa.org/schema/xfa-data/1.0/"><xfa:data><f><a>Walrus</a><row><b>1</b></row><row><b>2</b></row></f></xfa:data></xfa:datasets>'
    assert.equal(
      await readText({
        content: write(72, 700, 'Please wait...'),
        catalog: '/AcroForm << /Fields [] /XFA [(template) 6 0 R (datasets) 7 0 R] >>',
        objects: [buildStreamObject(template), buildStreamObject(data)],
      }),
      'Please wait...\n\nClaim form\nName Walrus\nb: 1\nb: 2',
    )
  })
})

describe('notes', () => {
  test('free text stands in its place; remarks follow the page, each before its replies', async () => {
    const notes = annotate([
      '/Subtype /FreeText /Rect [130 695 300 715] /Contents (Typed walrus) /F 4',
      '/Subtype /Text /Rect [72 600 92 620] /Contents (First note) /F 4',
      '/Subtype /Highlight /Rect [72 695 150 715] /QuadPoints [72 715 150 715 72 695 150 695] /Contents (Second note) /F 4',
      '/Subtype /Text /Rect [72 600 92 620] /IRT 7 0 R /Contents (Reply to the first) /F 4',
      '/Subtype /Text /Rect [72 500 92 520] /Contents (Hidden note) /F 2',
      '/Subtype /Text /Rect [72 500 92 520] /Contents (Printed note) /F 36',
      '/Subtype /Link /Rect [72 500 92 520] /Contents (Link) /F 4',
    ])
    assert.equal(
      await readText({ content: write(72, 700, 'Label'), ...notes }),
      'Label Typed walrus\n\nFirst note\n\nReply to the first\n\nSecond note',
    )
  })

  test('a remark that the page shows is not repeated, and a page of remarks alone is read', async () => {
    const same = annotate(['/Subtype /Stamp /Rect [72 600 92 620] /Contents (The whole line) /F 4'])
    assert.equal(await readText({ content: write(72, 700, 'The whole line'), ...same }), 'The whole line')
    const { status, text } = await open(buildPdf(same))
    assert.deepEqual([status, text], ['read', 'The whole line'])
  })
})

describe('parts that viewers do not show', () => {
  const content = `${write(72, 700, 'Shown')}/OC /MC0 BDC ${write(72, 650, 'Hidden')} EMC ${write(72, 600, 'Last')}`

  for (const [what, config, group] of [
    ['a layer', '/OFF [6 0 R]', '/Properties << /MC0 6 0 R >>'],
    ['a layer of a base that', '/BaseState /OFF', '/Properties << /MC0 6 0 R >>'],
    [
      'a member of layers that',
      '/OFF [6 0 R]',
      '/Properties << /MC0 << /Type /OCMD /OCGs [6 0 R] /P /AllOn >> >>',
    ],
  ] as const)
    test(`${what} is off is left out`, async () => {
      const catalog = `/OCProperties << /OCGs [6 0 R] /D << ${config} >> >>`
      const objects = ['<< /Type /OCG /Name (Draft) >>']
      assert.equal(await readText({ content, catalog, objects, resources: group }), 'Shown\nLast')
    })

  test('a form that is in a layer that is off is left out', async () => {
    const drawing = buildStreamObject(
      write(72, 650, 'Hidden'),
      '/Type /XObject /Subtype /Form /BBox [0 0 612 792] /OC 6 0 R /Resources << /Font << /F1 5 0 R >> >>',
    )
    assert.equal(
      await readText({
        content: `${write(72, 700, 'Shown')} /Fm Do ${write(72, 600, 'Last')}`,
        catalog: '/OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] >> >>',
        resources: '/XObject << /Fm 7 0 R >>',
        objects: ['<< /Type /OCG /Name (Draft) >>', drawing],
      }),
      'Shown\nLast',
    )
  })

  test('text outside of the crop box is left out', async () => {
    const texts = write(120, 700, 'Shown') + write(-300, 700, 'Left') + write(120, 50, 'Below')
    assert.equal(await readText({ content: texts, page: '/CropBox [100 100 500 750]' }), 'Shown')
  })
})

test('the unit of a page counts in the size of its image', async () => {
  const bytes = buildPdf({ content: write(10, 70, 'Unit'), page: '/UserUnit 2' })
  const { image } = await open(bytes)
  assert.deepEqual([image?.width, image?.height], [2550, 3300])
})

test('a password opens its file however its letters were typed', async () => {
  assert.deepEqual(listPasswordForms('I\u00adX\u00a0\u2168'), ['IX IX', 'I\u00adX\u00a0\u2168'])
  assert.deepEqual(listPasswordForms('secret'), ['secret'])
  const bytes = buildEncryptedPdf('na\u00efve', 'Opened')
  for (const password of ['na\u00efve', 'nai\u0308ve', 'na\u00ad\u00efve'])
    assert.equal((await open(bytes.slice(), password)).text, 'Opened')
  assert.equal((await open(buildEncryptedPdf('a\u00adb', 'As typed'), 'a\u00adb')).text, 'As typed')
})

describe('files', () => {
  const file = (name: string): string => `<< /Type /Filespec /UF (${name}) /EF << /F 7 0 R >> >>`
  const bytes = buildStreamObject('<ID>RE-77</ID>', '/Type /EmbeddedFile')
  const names = '/Names << /EmbeddedFiles << /Kids [8 0 R] >> >>'
  const tree = '<< /Limits [(a) (b)] /Names [(a) 6 0 R] >>'
  const content = write(72, 700, 'Cover page')

  for (const [what, parts] of [
    ['embedded files', { catalog: names, objects: [file('factur-x.xml'), bytes, tree] }],
    [
      'files of a portfolio',
      { catalog: `${names} /Collection << /View /T >>`, objects: [file('factur-x.xml'), bytes, tree] },
    ],
    [
      'files of annotations',
      {
        page: '/Annots [<< /Type /Annot /Subtype /FileAttachment /Rect [9 9 20 20] /FS 6 0 R >>]',
        objects: [file('factur-x.xml'), bytes],
      },
    ],
  ] as const)
    test(`${what} are attachments`, async () => {
      const { text, files } = await open(buildPdf({ content, ...parts }))
      assert.deepEqual([text, files], ['Cover page', [['factur-x.xml', '<ID>RE-77</ID>']]])
    })

  test('a damaged file is empty', async () => {
    const objects = ['<< /Type /Filespec /UF (lost.xml) /EF << /F 99 0 R >> >>', 'null', tree]
    const { files } = await open(buildPdf({ content, catalog: names, objects }))
    assert.deepEqual(files, [['lost.xml', '']])
  })
})
