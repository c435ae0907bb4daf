import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createOffice, createSheet, wordParagraph as p, wordPart } from '../office.ts'
import { createZip } from '../zip.ts'
import { read } from './office-help.ts'

/** Covers everything that office programs show besides plain paragraphs and cells. */

const CHART = `<c:chartSpace xmlns:c="c" xmlns:a="a"><c:title><a:p><a:r><a:t>Turnover</a:t></a:r></a:p></c:title><c:ser><c:tx><c:v>Fees</c:v></c:tx>
  <c:cat><c:pt><c:v>Jan</c:v></c:pt><c:pt><c:v>Feb</c:v></c:pt></c:cat><c:val><c:pt><c:v>12.300000000000001</c:v></c:pt><c:pt><c:v>4</c:v></c:pt></c:val></c:ser></c:chartSpace>`
const CHART_TEXT = 'Turnover\nJan\tFeb\nFees\t12.3\t4'
const DIAGRAM =
  '<d:dataModel xmlns:d="d" xmlns:a="a"><d:pt><d:t><a:p><a:r><a:t>Step one</a:t></a:r></a:p></d:t></d:pt></d:dataModel>'

describe('prefixes', () => {
  test('are free, for elements and attributes', async () => {
    const book = `<s:workbook xmlns:s="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:q="http://purl.oclc.org/ooxml/officeDocument/relationships"
      xmlns:r="urn:other"><s:sheets><s:sheet name="Odd" r:id="nothing" q:id="s"/></s:sheets></s:workbook>`
    const sheet = '<s:worksheet xmlns:s="x"><s:row><s:c t="str"><s:v>walrus</s:v></s:c></s:row></s:worksheet>'
    const xlsx = createOffice('xlsx', book, [['s', 'worksheet', 's.xml']], { 's.xml': sheet })
    assert.deepEqual(await read(xlsx, 'a.xlsx'), ['Odd\nwalrus'])
    const docx = createOffice(
      'docx',
      `<document xmlns="w" xmlns:x="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:w="urn:other"><p><r><t>a</t><br x:type="page"/><t>b</t><br w:type="page"/><t>c</t></r></p></document>`,
    )
    assert.deepEqual(await read(docx, 'a.docx'), ['a', 'b\nc'])
    const ods = createZip([
      ['mimetype', 'application/vnd.oasis.opendocument.spreadsheet'],
      [
        'content.xml',
        `<a:x xmlns:a="a" xmlns:b="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:table="urn:other"><b:table b:name="S" table:name="T"><b:table-row>
         <b:table-cell b:number-columns-repeated="2" table:number-columns-repeated="9"><a:p>1</a:p></b:table-cell></b:table-row></b:table></a:x>`,
      ],
    ])
    assert.deepEqual(await read(ods, 'a.ods'), ['S\n1\t1'])
  })
})

describe('what a sheet shows besides its cells', () => {
  test('comments and threads, text boxes, charts, headers and footers', async () => {
    const xlsx = createSheet('<row r="1"><c r="A1" t="str"><v>cell</v></c></row>', {
      after:
        '<headerFooter><oddHeader>&amp;L&amp;"Arial,Bold"&amp;12Quarterly &amp;K00FF00lynx&amp;RDraft</oddHeader><oddFooter>&amp;CPage &amp;P of &amp;N</oddFooter></headerFooter>',
      relations: [
        ['c', 'comments', 'c.xml', 's.xml'],
        ['t', 'threadedComment', 't.xml', 's.xml'],
        ['d', 'drawing', 'd.xml', 's.xml'],
        ['v', 'vmlDrawing', 'v.vml', 's.xml'],
        ['h', 'chart', 'h.xml', 'd.xml'],
      ],
      parts: {
        'c.xml':
          '<comments><authors><author>Ane</author><author>tc={1}</author></authors><comment ref="A1" authorId="0"><text><r><t>Check </t></r><r><t>this</t></r></text></comment><comment ref="B2" authorId="1"><text><t>[Threaded comment] copy</t></text></comment></comments>',
        't.xml':
          '<ThreadedComments><threadedComment ref="B2"><text>Reply please</text></threadedComment></ThreadedComments>',
        'd.xml':
          '<d:wsDr xmlns:d="d" xmlns:a="a"><d:sp><a:p><a:r><a:t>Boxed</a:t></a:r></a:p></d:sp></d:wsDr>',
        'v.vml': '<xml><v:shape><v:textbox><div>Press</div></v:textbox></v:shape></xml>',
        'h.xml': CHART,
      },
    })
    const lines = [
      'S',
      'cell',
      'A1: Check this',
      'B2: Reply please',
      'Boxed',
      ...CHART_TEXT.split('\n'),
      'Press',
      'Quarterly lynx\tDraft',
    ]
    assert.deepEqual(await read(xlsx, 'a.xlsx'), [lines.join('\n')])
  })

  test('formats that change digits', async () => {
    const codes = [
      '0.0%',
      '00000',
      '000-00-0000',
      '# ?/?',
      '0.00E+00',
      '#,##0.00 [$€-407]',
      '0.00;[Red](0.00)',
      '"No. "@',
      ';;;',
      '0'.repeat(300),
    ]
    const values = ['0.075', '2139', '12345678', '1.5', '12345', '1234.5', '-3', 'x', '5', '7']
    const formats = `<numFmts>${codes.map((code, n) => `<numFmt numFmtId="${200 + n}" formatCode="${code.replaceAll('"', '&quot;')}"/>`).join('')}</numFmts>
      <cellXfs>${codes.map((_, n) => `<xf numFmtId="${200 + n}"/>`).join('')}<xf numFmtId="9"/></cellXfs>`
    const cells = values
      .map((value, n) => `<c s="${n}"${value === 'x' ? ' t="str"' : ''}><v>${value}</v></c>`)
      .join('')
    const [text] = await read(
      createSheet(`<row>${cells}<c s="10"><v>0.4</v></c></row>`, { formats }),
      'a.xlsx',
    )
    assert.equal(text, 'S\n7.5%\t02139\t012-34-5678\t1 1/2\t1.23E+04\t1,234.50 €\t(3.00)\tNo. x\t\t7\t40%')
  })

  test('formulas without values, with those of shared formulas', async () => {
    const rows = `<row r="1"><c r="A1"><f>A2+B$3</f></c><c r="B1"><f>HYPERLINK("https://example.com","yak")</f></c><c r="C1"><f>"constant"</f></c><c r="D1"><f>1+1</f><v>2</v></c></row>
      <row r="2"><c r="A2"><f t="shared" si="0" ref="A2:A3">B2*$C$1&amp;"A1"</f></c></row><row r="3"><c r="A3"><f t="shared" si="0"/></c></row>`
    assert.deepEqual(await read(createSheet(rows), 'a.xlsx'), [
      'S\n=A2+B$3\tyak\tconstant\t2\n=B2*$C$1&"A1"\n=B3*$C$1&"A1"',
    ])
    const ods = createZip([
      ['mimetype', 'application/vnd.oasis.opendocument.spreadsheet'],
      [
        'content.xml',
        '<o><table:table table:name="S"><table:table-row><table:table-cell table:formula="of:=[.A1]+1"/><table:table-cell office:value="7"/></table:table-row></table:table></o>',
      ],
    ])
    assert.deepEqual(await read(ods, 'a.ods'), ['S\n=A1+1\t7'])
  })
})

describe('slides', () => {
  test('have charts, diagrams, comments, notes and the texts of their layout', async () => {
    const frame = (element: string) => `<p:graphicFrame>${element}</p:graphicFrame>`
    const slide = `<p:sld xmlns:p="p" xmlns:a="a" xmlns:rel="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><a:p><a:r><a:t>Title</a:t></a:r></a:p>
      ${frame('<c:chart rel:id="h"/>')}${frame('<d:relIds rel:dm="g"/>')}</p:sld>`
    const text = (words: string) => `<x xmlns:a="a"><a:p><a:r><a:t>${words}</a:t></a:r></a:p></x>`
    const pptx = createOffice(
      'pptx',
      '<p:presentation xmlns:p="p" xmlns:k="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><p:sldId id="256" k:id="s"/></p:presentation>',
      [
        ['s', 'slide', 's.xml'],
        ['h', 'chart', 'h.xml', 's.xml'],
        ['g', 'diagramData', 'g.xml', 's.xml'],
        ['l', 'slideLayout', 'l.xml', 's.xml'],
        ['n', 'notesSlide', 'n.xml', 's.xml'],
        ['c', 'comments', 'c.xml', 's.xml'],
      ],
      {
        's.xml': slide,
        'h.xml': CHART,
        'g.xml': DIAGRAM,
        'l.xml': `<l xmlns:p="p" xmlns:a="a"><p:sp><p:nvPr><p:ph/></p:nvPr><a:p><a:r><a:t>Click to edit</a:t></a:r></a:p></p:sp><p:sp><a:p><a:r><a:t>Company</a:t></a:r></a:p></p:sp></l>`,
        'n.xml': text('Speak up'),
        'c.xml': '<p:cmLst xmlns:p="p"><p:cm><p:text>Too long</p:text></p:cm></p:cmLst>',
      },
    )
    assert.deepEqual(await read(pptx, 'a.pptx'), [
      `Title\n${CHART_TEXT}\nStep one\n\nCompany\n\nSpeak up\n\nToo long`,
    ])
  })
})

describe('text documents', () => {
  test('show charts and embedded files where they stand', async () => {
    const inner = createSheet('<row><c t="str"><v>inside</v></c></row>')
    const docx = createOffice(
      'docx',
      wordPart(
        `${p('alpha')}<w:altChunk r:id="f"/>${p('beta')}<w:p><w:r><c:chart r:id="h"/></w:r></w:p><w:altChunk r:id="t"/><w:object><o:OLEObject r:id="e"/></w:object><v:textpath string="DRAFT"/>`,
      ),
      [
        ['f', 'aFChunk', 'f.html'],
        ['t', 'aFChunk', 't.rtf'],
        ['h', 'chart', 'h.xml'],
        ['e', 'package', 'e.xlsx'],
      ],
      {
        'f.html': '<html><p>quartz</p></html>',
        't.rtf': String.raw`{\rtf1 rich}`,
        'h.xml': CHART,
        'e.xlsx': inner,
      },
    )
    assert.deepEqual(await read(docx, 'a.docx'), [
      `alpha\nquartz\nbeta\n${CHART_TEXT}\n\nrich\nS\ninside\nDRAFT`,
    ])
  })

  test('end pages at sections, and before paragraphs by their style', async () => {
    const section = (type: string) =>
      `<w:sectPr><w:type w:val="${type}"/><w:sectPrChange><w:sectPr/></w:sectPrChange></w:sectPr>`
    const docx = createOffice(
      'docx',
      wordPart(
        `${p('first', '<w:pStyle w:val="Sub"/>')}${p('one', '<w:sectPr/>')}${p('two', section('continuous'))}${p('three', section('oddPage'))}${p('four', '<w:pStyle w:val="Sub"/>')}${p('five', '<w:pStyle w:val="Sub"/><w:pageBreakBefore w:val="0"/>')}${section('continuous')}`,
      ),
      [
        ['y', 'styles', 'y.xml'],
        ['h', 'header', 'h.xml'],
      ],
      {
        'h.xml': wordPart(p('Head')),
        'y.xml':
          '<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:style w:styleId="Top"><w:pPr><w:pageBreakBefore/></w:pPr></w:style><w:style w:styleId="Sub"><w:basedOn w:val="Top"/></w:style></w:styles>',
      },
    )
    assert.deepEqual(await read(docx, 'a.docx'), ['Head\nfirst\none\ntwo', 'three', 'four\nfive'])
    const style = (name: string, properties: string, more = '') =>
      `<style:style style:name="${name}" style:family="paragraph" ${more}><style:paragraph-properties ${properties}/></style:style>`
    const odt = createZip([
      ['mimetype', 'application/vnd.oasis.opendocument.text'],
      [
        'content.xml',
        `<o>${style('A', 'fo:break-after="page"')}${style('B', '', 'style:parent-style-name="A"')}${style('C', '', 'style:master-page-name="Wide"')}
         <text:p text:style-name="C">one</text:p><text:p text:style-name="B">two</text:p><text:p>three</text:p><text:p text:style-name="C">four</text:p></o>`,
      ],
    ])
    assert.deepEqual(await read(odt, 'a.odt'), ['one\ntwo', 'three', 'four'])
  })

  test('show numbers, symbols and fields that are no text', async () => {
    const level = (n: number, format: string, text: string) =>
      `<w:lvl w:ilvl="${n}"><w:start w:val="1"/><w:numFmt w:val="${format}"/><w:lvlText w:val="${text}"/></w:lvl>`
    const numbered = (text: string, at = 0, id = 1) =>
      p(text, `<w:numPr><w:ilvl w:val="${at}"/><w:numId w:val="${id}"/></w:numPr>`)
    const field = (content: string) => `<w:fldChar><w:ffData>${content}</w:ffData></w:fldChar>`
    const docx = createOffice(
      'docx',
      wordPart(
        `${numbered('Scope')}${numbered('in', 1)}${numbered('out', 1)}${numbered('Term')}${numbered('again', 1)}${numbered('fresh', 0, 2)}
         <w:p><w:r><w:sym w:font="Wingdings" w:char="F0FE"/><w:t>a</w:t><w:ptab/><w:t>b</w:t><w:softHyphen/><w:t>c</w:t></w:r><w:r><w:rPr><w:rFonts w:ascii="Wingdings"/></w:rPr><w:t>ü</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>
         <w:r>${field('<w:checkBox><w:default w:val="1"/></w:checkBox>')}${field('<w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/><w:listEntry w:val="blue"/></w:ddList>')}</w:r></w:p>`,
      ),
      [['n', 'numbering', 'n.xml']],
      {
        'n.xml': `<w:numbering xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:abstractNum w:abstractNumId="0">${level(0, 'upperRoman', '§ %1.')}${level(1, 'lowerLetter', '%1.%2)')}</w:abstractNum>
          <w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="9"/></w:lvlOverride></w:num></w:numbering>`,
      },
    )
    assert.deepEqual(await read(docx, 'a.docx'), [
      '§ I. Scope\nI.a) in\nI.b) out\n§ II. Term\nII.a) again\n§ IX. fresh\n☑a\tbc✓☒blue',
    ])
  })
})

describe('RTF', () => {
  const rtf = (body: string) =>
    read(
      String.raw`{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Arial;}{\f1\fcharset2{\*\panose 05}Wingdings;}{\f2\fcharset255 Terminal;}}${body}}`,
      'a.rtf',
    )

  test('an asterisk silences only a group that it begins', async () => {
    assert.deepEqual(
      await rtf(String.raw`{\pard\*\qc seen}{\*\unknown unseen}{
\*\unknown unseen}`),
      ['seen'],
    )
  })

  test('text boxes, comments and notes follow their page, and older copies are left out', async () => {
    const shape = String.raw`{\shp{\*\shpinst{\sp{\sn gtextUNICODE}{\sv Word art}}{\sp{\sn x}{\sv 12}}{\shptxt giraffe\par}}{\shprslt{\*\do copy}}}`
    const body = String.raw`be${shape}fore{\*\annotation{\*\atndate 1}ocelot} after\page two{\nonshppict no}{\footnote note}`
    assert.deepEqual(await rtf(body), ['before after\nWord art\ngiraffe\nocelot', 'two\nnote'])
  })

  test('code pages, symbols, hidden text, copies in Unicode and binary data', async () => {
    assert.deepEqual(
      await rtf(
        String.raw`{\f2 Caf\'82} {\f1 \'fc}{\v no}{\deleted no}{\upr{ansi}{\*\ud{\u945?}}}{\pict\bin5 }}}}}}b \u8364\'80\b !`,
      ),
      ['Café ✓αb €!'],
    )
    for (const [page, bytes, word] of [
      [437, String.raw`\'81`, 'ü'],
      [852, String.raw`\'88`, 'ł'],
      [866, String.raw`\'8f`, 'П'],
      [775, String.raw`\'d8`, 'ž'],
      [10029, String.raw`\'b8`, 'ł'],
    ] as const)
      assert.deepEqual(await read(String.raw`{\rtf1\ansi\ansicpg${page} ${bytes}}`, 'a.rtf'), [word])
  })

  test('sections and paragraphs end pages', async () => {
    const body = String.raw`one\sect\sectd\sbknone two\sect\sectd three\par\pard\pagebb four\par five\par\pard six\softpage seven`
    assert.deepEqual(await rtf(body), ['one\ntwo', 'three', 'four', 'five\nsix', 'seven'])
  })
})
