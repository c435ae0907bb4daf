import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { MarkdownBuilder } from '../../workers/children/markdown/builder.ts'
import { escapeCell, escapeLine } from '../../workers/children/markdown/escape.ts'
import { renderMarkdown } from '../../workers/children/markdown/render.ts'
import { createOffice, createSheet, wordParagraph as p, wordPart } from '../office.ts'
import { buildRawPdf, buildStreamObject } from '../pdfs.ts'
import { createZip } from '../zip.ts'
import { readPages } from './office-help.ts'

/** Covers the Markdown of pages, by the format of their file. */

async function readMarkdown(bytes: Uint8Array | string, fileName: string): Promise<(string | null)[]> {
  const { pages } = await readPages(bytes, fileName)
  for (const { status, detail } of pages) assert.equal(status, 'read', detail ?? '')
  return pages.map(({ markdown = null }) => markdown)
}

const fixture = (name: string): Buffer => readFileSync(new URL(`../data/${name}`, import.meta.url))

describe('the writer', () => {
  test('escapes what would be read as markup, and nothing else', () => {
    for (const [line, escaped] of [
      ['snake_case and 2 * 3 < 4 & "5" [1] ______', 'snake_case and 2 * 3 < 4 & "5" [1] ______'],
      ['*bold* __init__ ~~gone~~', '\\*bold\\* \\_\\_init\\_\\_ \\~\\~gone\\~\\~'],
      ['<script>`x` &amp; [a](b) C:\\!', '\\<script>\\`x\\` \\&amp; [a\\](b) C:\\\\!'],
      ['# no heading', '\\# no heading'],
      ['- no item', '\\- no item'],
      ['12. no number', '12\\. no number'],
      ['> no quote', '\\> no quote'],
      ['---', '\\---'],
      ['| --- | --- |', '\\| --- | --- |'],
      ['#1 is no heading, 1.5 no number, -5 no item', '#1 is no heading, 1.5 no number, -5 no item'],
    ] as const)
      assert.equal(escapeLine(line), escaped)
    assert.equal(escapeCell('a|b\n *c*'), 'a\\|b<br>\\*c\\*')
  })

  test('nests lists, and parts those that would run together', () => {
    const item = (text: string, depth: number, marker: string | null) =>
      ({ kind: 'item', text, depth, marker }) as const
    assert.equal(
      renderMarkdown([
        item('a', 0, '-'),
        item('b\nc', 1, null),
        item('d', 1, null),
        { kind: 'text', text: 'e', depth: 2 },
        item('f', 9, '-'),
        item('g', 0, '-'),
        item('h', 0, '7.'),
        { kind: 'text', text: 'i', depth: 0 },
      ]),
      '- a\n  1. b\\\n     c\n  2. d\n\n     e\n     - f\n- g\n\n7. h\n\ni',
    )
  })

  test('a table has its first full row as header, and only the columns that it needs', () => {
    assert.equal(
      renderMarkdown([
        {
          kind: 'table',
          rows: [
            ['', 'Title', ''],
            ['', ''],
            ['', 'a', 'b', ''],
            ['', 'c', '', 'd|e'],
          ],
        },
      ]),
      'Title\n\n| a | b |  |\n| --- | --- | --- |\n| c |  | d\\|e |',
    )
  })

  test('a code block has a fence that its text lacks', () => {
    assert.equal(renderMarkdown([{ kind: 'code', text: '\n  a\n```\n' }]), '````\n  a\n```\n````')
  })

  test('a page of many cells, rows and breaks stays within the limit', () => {
    const builder = new MarkdownBuilder()
    builder.openTable()
    for (let row = 0; row < 30_000; row++) {
      builder.openRow()
      for (let n = 0; n < 100; n++) builder.openCell(100, 100)
      builder.addBreak()
    }
    builder.add('word')
    assert.ok((builder.end() ?? '').length < 2_100_000)
  })
})

const STYLES = `<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
  <w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>
  <w:style w:styleId="Own"><w:name w:val="Chapter"/><w:basedOn w:val="berschrift2"/></w:style>
  <w:style w:styleId="Deep"><w:name w:val="Deep"/><w:pPr><w:outlineLvl w:val="8"/></w:pPr></w:style>
  <w:style w:styleId="Toc"><w:basedOn w:val="berschrift2"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>
  <w:style w:styleId="Titre1"><w:name w:val="Titre 1"/></w:style></w:styles>`
const NUMBERING = `<w:numbering xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
  <w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/></w:lvl>
    <w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/><w:lvlText w:val="%2."/></w:lvl></w:abstractNum>
  <w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1)"/></w:lvl></w:abstractNum>
  <w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num></w:numbering>`
const styled = (text: string, style: string): string => p(text, `<w:pStyle w:val="${style}"/>`)
const listed = (text: string, level: number, id: number): string =>
  p(text, `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="${id}"/></w:numPr>`)
const cell = (content: string, properties = ''): string =>
  `<w:tc><w:tcPr>${properties}</w:tcPr>${content}</w:tc>`
const createDocx = (body: string): Buffer =>
  createOffice(
    'docx',
    wordPart(body),
    [
      ['s', 'styles', 'styles.xml'],
      ['n', 'numbering', 'numbering.xml'],
    ],
    { 'styles.xml': STYLES, 'numbering.xml': NUMBERING },
  )

describe('Word documents', () => {
  test('headings by outline level: inherited, built-in and of other languages', async () => {
    const body =
      styled('One', 'Titre1') +
      styled('Two', 'Own') +
      styled('Six #', 'Deep') +
      styled('Contents', 'Toc') +
      p('Text')
    assert.deepEqual(await readMarkdown(createDocx(body), 'a.docx'), [
      '# One\n\n## Two\n\n###### Six \\#\n\nContents\n\nText',
    ])
  })

  test('lists with levels; labels that Markdown lacks stay', async () => {
    const body = listed('a', 0, 1) + listed('b', 1, 1) + listed('c', 1, 1) + p('Between') + listed('d', 0, 2)
    assert.deepEqual(await readMarkdown(createDocx(body), 'a.docx'), [
      '- a\n  1. b\n  2. c\n\nBetween\n\n- a) d',
    ])
  })

  test('tables with merged cells and line ends; a table of one cell is a box', async () => {
    const row = (...cells: string[]): string => `<w:tr>${cells.join('')}</w:tr>`
    const table = (...rows: string[]): string => `<w:tbl>${rows.join('')}</w:tbl>`
    const body = table(
      row(cell(p('A'), '<w:gridSpan w:val="2"/>'), cell(p('B|C'))),
      row(cell(p('1')), cell(p('2') + p('two'), '<w:vMerge w:val="restart"/>'), cell(p('3'))),
      row(cell(p('4')), cell(p(''), '<w:vMerge/>'), cell(p('5'))),
    )
    const box = table(row(cell(styled('Boxed', 'Titre1') + p('note'))))
    assert.deepEqual(await readMarkdown(createDocx(body + box), 'a.docx'), [
      '| A |  | B\\|C |\n| --- | --- | --- |\n| 1 | 2<br>two | 3 |\n| 4 |  | 5 |\n\n# Boxed\n\nnote',
    ])
  })

  test('a page break before the text of a heading keeps the heading', async () => {
    const broken =
      '<w:p><w:pPr><w:pStyle w:val="Titre1"/></w:pPr><w:r><w:lastRenderedPageBreak/><w:t>Next</w:t></w:r></w:p>'
    assert.deepEqual(await readMarkdown(createDocx(p('First') + broken), 'a.docx'), [null, '# Next'])
  })

  test('a document without structure has no Markdown', async () => {
    assert.deepEqual(await readMarkdown(createDocx(p('Just *text*')), 'a.docx'), [null])
  })
})

describe('sheets and slides', () => {
  test('a sheet is a table below its name; blank rows are left out', async () => {
    const at = (name: string, value: string): string => `<c r="${name}" t="str"><v>${value}</v></c>`
    const rows = `<row r="1">${at('B1', 'Fees of May')}</row><row r="2"/><row r="3">${at('B3', 'Ship')}${at('C3', 'Fee')}</row>
      <row r="4">${at('C4', '4|5')}</row>`
    assert.deepEqual(await readMarkdown(createSheet(rows), 'a.xlsx'), [
      '## S\n\nFees of May\n\n| Ship | Fee |\n| --- | --- |\n|  | 4\\|5 |',
    ])
    for (const name of ['figures.ods', 'figures.xlsx'])
      assert.equal(
        (await readMarkdown(fixture(name), name))[0],
        '## Fees\n\n| Ship | Fee | Paid on |\n| --- | --- | --- |\n| Kestrel | 1284.5 | 2026-03-14 |\n| Total | 2569 | TRUE |',
      )
    assert.deepEqual(
      await readMarkdown('<table><tr><td>a<td rowspan=2>b<tr><td>c<tr><td>d<td>e</table>', 'a.xls'),
      ['| a | b |\n| --- | --- |\n| c |\n| d | e |'],
    )
  })

  test('a slide has its title as heading, and its points as a list with levels', async () => {
    const shape = (holder: string, paragraphs: string): string =>
      `<p:sp><p:nvSpPr><p:nvPr>${holder}</p:nvPr></p:nvSpPr><p:txBody>${paragraphs}</p:txBody></p:sp>`
    const a = (text: string, properties = ''): string =>
      `<a:p>${properties}<a:r><a:t>${text}</a:t></a:r></a:p>`
    const slide = `<p:sld xmlns:p="p" xmlns:a="a">${shape('<p:ph type="title"/>', a('Plan'))}${shape(
      '<p:ph idx="1"/>',
      a('First') + a('Inner', '<a:pPr lvl="1"/>') + a('None', '<a:pPr><a:buNone/></a:pPr>'),
    )}${shape('', a('Box') + a('Step', '<a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr>'))}
      <p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody>${a('x')}</a:txBody></a:tc><a:tc><a:txBody>${a('y')}</a:txBody></a:tc></a:tr></a:tbl></p:graphicFrame></p:sld>`
    const pptx = createOffice(
      'pptx',
      `<p:presentation xmlns:p="p" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><p:sldId r:id="s"/></p:presentation>`,
      [['s', 'slide', 's.xml']],
      { 's.xml': slide },
    )
    assert.deepEqual(await readMarkdown(pptx, 'a.pptx'), [
      '# Plan\n\n- First\n  - Inner\n\nNone\n\nBox\n\n1. Step\n\n| x | y |\n| --- | --- |',
    ])
  })
})

describe('OpenDocument texts', () => {
  test('a paragraph in a style of headings is one', async () => {
    const [first] = await readMarkdown(fixture('letter.odt'), 'letter.odt')
    assert.match(first!, /^# Letter of the harbour office\n\nDear/)
  })

  test('headings, numbered and nested lists, merged cells', async () => {
    const space = (name: string): string =>
      `xmlns:${name}="urn:oasis:names:tc:opendocument:xmlns:${name}:1.0"`
    const content = `<office:document-content ${['office', 'text', 'table', 'style'].map(space).join(' ')}>
      <office:automatic-styles><text:list-style style:name="L"><text:list-level-style-number text:level="2" style:num-format="1"/></text:list-style></office:automatic-styles>
      <office:body><office:text><text:h text:outline-level="2">Head</text:h>
      <text:list text:style-name="L"><text:list-item><text:p>a</text:p><text:p>more</text:p>
        <text:list><text:list-item><text:p>b</text:p></text:list-item><text:list-item><text:p>c</text:p></text:list-item></text:list></text:list-item></text:list>
      <text:p>After</text:p>
      <table:table><table:table-row><table:table-cell table:number-columns-spanned="2"><text:p>x</text:p></table:table-cell><table:covered-table-cell/><table:table-cell><text:p>y</text:p></table:table-cell></table:table-row>
      <table:table-row><table:table-cell><text:p>1</text:p></table:table-cell><table:table-cell><text:p>2</text:p></table:table-cell><table:table-cell><text:p>3</text:p></table:table-cell></table:table-row></table:table>
      </office:text></office:body></office:document-content>`
    const odt = createZip([
      ['mimetype', 'application/vnd.oasis.opendocument.text'],
      ['content.xml', content],
    ])
    assert.deepEqual(await readMarkdown(odt, 'a.odt'), [
      '## Head\n\n- a\n\n  more\n  1. b\n  2. c\n\nAfter\n\n| x |  | y |\n| --- | --- | --- |\n| 1 | 2 | 3 |',
    ])
  })
})

describe('web pages', () => {
  test('headings, lists, tables, code and line breaks', async () => {
    const html = `<html><body><h2>Ships</h2><p>Two<br>lines</p><ol start=3><li>three<li><p>four</p><ul><li>inner</ul></ol>
      <pre>  let a
    b</pre><table><caption>Fees</caption><thead><tr><th>Ship<th>Fee</thead><tr><td rowspan=2>Kestrel<td>1<br>2<tr><td>3</table></body></html>`
    assert.deepEqual(await readMarkdown(html, 'a.html'), [
      '## Ships\n\nTwo\\\nlines\n\n3. three\n4. four\n   - inner\n\n```\n  let a\n    b\n```\n\nFees\n\n| Ship | Fee |\n| --- | --- |\n| Kestrel | 1<br>2 |\n|  | 3 |',
    ])
  })

  test('a table around tables or headings is a layout', async () => {
    const html =
      '<table><tr><td><h1>News</h1><table><tr><td>a<td>b<tr><td>c<td>d</table><tr><td>Foot</table><p>End</p>'
    assert.deepEqual(await readMarkdown(html, 'a.html'), [
      '# News\n\n| a | b |\n| --- | --- |\n| c | d |\n\nFoot\n\nEnd',
    ])
  })

  test('a mail has the structure of its HTML part', async () => {
    const mail = `From: a@example.com\nSubject: Fees\nContent-Type: text/html\n\n<h1>Due</h1><ul><li>one<li>two</ul>`
    assert.deepEqual(await readMarkdown(mail, 'a.eml'), [
      'Subject: Fees\\\nFrom: a@example.com\n\n# Due\n\n- one\n- two',
    ])
  })

  test('Markdown files and plain texts stay as they are', async () => {
    assert.deepEqual(await readMarkdown('# Head\n\n- a\n', 'a.md'), [null])
  })

  test('elements that never close cost little', async () => {
    for (const unit of [
      '<ul><li>',
      '<table><tr><td>',
      '<table><tr><td rowspan=1000 colspan=1000>x',
      '<h1><td>',
    ])
      assert.equal((await readMarkdown(unit.repeat(100_000), 'a.html')).length, 1, unit)
  })
})

describe('PDF', () => {
  const build = (content: string): Uint8Array =>
    buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
      buildStreamObject(content),
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ])
  const line = (text: string, x: number, y: number, size: number): string =>
    `BT /F1 ${size} Tf ${x} ${y} Td (${text}) Tj ET\n`
  const prose = Array.from({ length: 6 }, (_, i) =>
    line(`The harbour office writes a longer sentence number ${i} on this line.`, 50, 650 - 14 * i, 10),
  ).join('')

  test('headings by their size, and tables by their columns', async () => {
    const table = [
      ['Ship', 'Length', 'Fee'],
      ['Kestrel', '42 m', '1,284.50'],
      ['Heron of the north', '7 m', '12.00'],
    ]
      .flatMap((row, i) => row.map((text, n) => line(text, [50, 250, 400][n]!, 500 - 14 * i, 10)))
      .join('')
    const pdf = build(line('Annual report', 50, 720, 20) + prose + table)
    const [markdown] = await readMarkdown(pdf, 'a.pdf')
    assert.match(markdown!, /^# Annual report\n\nThe harbour/)
    assert.ok(
      markdown!.endsWith(
        '| Ship | Length | Fee |\n| --- | --- | --- |\n| Kestrel | 42 m | 1,284.50 |\n| Heron of the north | 7 m | 12.00 |',
      ),
      markdown!,
    )
  })

  test('lines of one heading are joined, and lines of a paragraph stay lines', async () => {
    const head = line('A heading over', 50, 740, 20) + line('two lines', 50, 717, 20)
    const [markdown] = await readMarkdown(build(head + prose), 'a.pdf')
    assert.match(markdown!, /^# A heading over two lines\n\nThe .* 0 on this line\.\nThe /)
  })

  test('a cell may have several lines', async () => {
    const cells = [
      ['Ship', 'Remark', '80'],
      ['Kestrel', 'old and', '66'],
      ['', 'slow', '52'],
      ['Heron', 'new', '38'],
    ].map(([a, b, y]) => (a === '' ? '' : line(a!, 50, Number(y), 10)) + line(b!, 250, Number(y), 10))
    assert.deepEqual(await readMarkdown(build(cells.join('')), 'a.pdf'), [
      '| Ship | Remark |\n| --- | --- |\n| Kestrel | old and slow |\n| Heron | new |',
    ])
  })

  test('prose has no Markdown, in one column or two', async () => {
    assert.deepEqual(await readMarkdown(build(prose), 'a.pdf'), [null])
    const columns = Array.from(
      { length: 8 },
      (_, i) =>
        line(`left column of the page, line ${i}`, 50, 600 - 14 * i, 10) +
        line(`right column of the page, line ${i}`, 320, 600 - 14 * i, 10),
    ).join('')
    assert.deepEqual(await readMarkdown(build(columns), 'a.pdf'), [null])
  })
})
