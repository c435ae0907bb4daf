import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { analyze } from '../../tasks/rag/analyze.ts'
import { splitHtml } from '../../tasks/rag/blocks/html.ts'
import {
  type Chunk,
  type Format,
  MAX_CHUNK_CHARACTERS,
  type PageStart,
  splitIntoChunks,
} from '../../tasks/rag/chunks.ts'

/** Texts are split by their structure. Chunks are short enough, lose nothing and have correct positions. */

const createWords = (n: number, seed = 'word'): string =>
  Array.from({ length: n }, (_, i) => `${seed}${i}`).join(' ')

/** Asserts the invariants of chunks whose text is part of the original. */
function assertPlaced(text: string, chunks: readonly Chunk[]): void {
  let last = 0
  for (const chunk of chunks) {
    assert.equal(chunk.content, text.slice(chunk.startOffset, chunk.endOffset))
    assert.ok(chunk.content.length <= MAX_CHUNK_CHARACTERS && chunk.content.trim() !== '')
    assert.ok(chunk.startOffset >= last, 'in order, without overlap')
    assert.equal(text.slice(last, chunk.startOffset).trim(), '', 'nothing but white space between')
    assert.equal(chunk.startLine, text.slice(0, chunk.startOffset).split('\n').length)
    assert.equal(chunk.endLine, text.slice(0, chunk.endOffset).split('\n').length)
    last = chunk.endOffset
  }
  assert.equal(text.slice(last).trim(), '')
}

describe('chunks', () => {
  test('of an empty text do not exist', () => {
    for (const format of ['text', 'markdown', 'code', 'html', 'pdf'] as const)
      for (const text of ['', '\n\n', ' \t\r\n ']) assert.deepEqual(splitIntoChunks(text, format), [], format)
  })

  test('of a page use its declared encoding, unless it is UTF-8', () => {
    const cyrillic = Buffer.from([...'Мельница'].map((letter) => letter.charCodeAt(0) - 0x410 + 0xc0))
    for (const declared of [
      '<meta charset=windows-1251>',
      `<META http-equiv="Content-Type" content="text/html; charset=windows-1251">`,
      '<?xml version="1.0" encoding="windows-1251"?>',
    ])
      for (const bytes of [cyrillic, Buffer.from('Мельница')]) {
        const page = Buffer.concat([Buffer.from(`${declared}<p>`), bytes])
        const analyzed = analyze(page, { format: 'html', fileName: 'a.html' })
        assert.ok('chunks' in analyzed)
        assert.deepEqual(
          analyzed.chunks.map(({ content }) => content),
          ['Мельница'],
          declared,
        )
      }
    const odd = Buffer.from('<meta charset="utf-16"><p>M\xfchle', 'latin1')
    assert.ok(JSON.stringify(analyze(odd, { format: 'html', fileName: 'a.html' })).includes('Mühle'))
  })

  test('of paragraphs join neighbours', () => {
    const text = `${createWords(100)}.\n\n${createWords(100)}.\n \n${createWords(100)}.\n`
    const chunks = splitIntoChunks(text, 'text')
    assertPlaced(text, chunks)
    assert.deepEqual(
      chunks.map(({ startLine, endLine }) => [startLine, endLine]),
      [
        [1, 3],
        [5, 5],
      ],
    )
  })

  test('of a long paragraph end at a line, a sentence, a word, or anywhere', () => {
    for (const [text, end] of [
      [Array.from({ length: 80 }, () => createWords(8)).join('\n'), /\d$/],
      [Array.from({ length: 80 }, () => `${createWords(8)}.`).join(' '), /\.$/],
      [createWords(800), /\d$/],
      ['x'.repeat(5000), /x$/],
      ['😀'.repeat(3000), /😀$/u],
    ] as const) {
      const chunks = splitIntoChunks(text, 'text')
      assertPlaced(text, chunks)
      assert.ok(chunks.length > 1)
      for (const { content } of chunks) {
        assert.match(content, end)
        assert.ok(content.isWellFormed())
      }
    }
  })

  test('of Markdown have their headings', () => {
    const long = createWords(120)
    const text = `---\ntitle: t\n---\n\n# One [link](x)\n\n${long}\n\n## Two ##\n\n${long}\n\n\`\`\`sh\n# no heading\n\n\n## nor this\n\`\`\`\n\nThree\n-----\n\n${long}\n\n# Four\n${long}\n`
    const chunks = splitIntoChunks(text, 'markdown')
    assertPlaced(text, chunks)
    assert.deepEqual(
      chunks.map(({ heading }) => heading),
      ['One link', 'One link > Two', 'One link > Three', 'Four'].map((heading, i) =>
        i === 0 ? null : heading,
      ),
    )
  })

  test('of code are its declarations, with their names', () => {
    const body = Array.from({ length: 25 }, (_, i) => `    total += ${createWords(3, `v${i}`)}`).join('\n')
    const method = (name: string): string =>
      `  ${name}(a: number): number {\n${body}\n    return total\n  }\n`
    const text = `import x from 'y'\n\n/** What it is. */\nexport class Big {\n${['one', 'two', 'three', 'four', 'five'].map(method).join('\n')}}\n\nconst small = 1\n\nexport function after() {\n  return 2\n}\n`
    const chunks = splitIntoChunks(text, 'code')
    assertPlaced(text, chunks)
    const names = chunks.map(({ heading }) => heading)
    for (const name of ['two', 'three', 'four']) assert.ok(names.includes(`Big > ${name}`), String(names))
    const last = chunks.at(-1)!
    assert.match(last.content, /function after/)
    assert.doesNotMatch(last.content, /total/)
  })

  test('of Python are its functions', () => {
    const body = Array.from({ length: 30 }, (_, i) => `    line_${i} = ${i}`).join('\n')
    const text = ['alpha', 'beta', 'gamma'].map((name) => `@mark\ndef ${name}(x):\n${body}\n`).join('\n\n')
    const chunks = splitIntoChunks(text, 'code')
    assertPlaced(text, chunks)
    assert.deepEqual(
      chunks.map(({ heading, startLine }) => [heading, text.split('\n')[startLine - 1]]),
      [
        ['alpha', '@mark'],
        ['beta', '@mark'],
        ['gamma', '@mark'],
      ],
    )
  })

  test('of HTML contain the visible text, with its position', () => {
    const html = `<!doctype html><title>Title</title><body>\n<nav>menu</nav>\n<h1>Top &amp; tail</h1>\n<p>One <b>bold</b>\n word<br>next</p><style>p{}</style>\n<h2>Below</h2><ul><li>item</li></ul><script>alert("x")</script>`
    assert.deepEqual(
      splitHtml(html).map(({ text, path }) => [text, path.join('/')]),
      [
        ['Title', ''],
        ['Top & tail', 'Top & tail'],
        ['One bold word', 'Top & tail'],
        ['next', 'Top & tail'],
        ['Below', 'Top & tail/Below'],
        ['item', 'Top & tail/Below'],
      ],
    )
    const [chunk] = splitIntoChunks(html, 'html')
    assert.equal(chunk!.content, 'Title\n\nTop & tail\n\nOne bold word\n\nnext\n\nBelow\n\nitem')
    assert.deepEqual([chunk!.startLine, chunk!.heading], [1, null])
  })

  test('of a PDF do not cross pages', () => {
    const text = `Page one.\n\nPage two.\n\nStill two.\n\n`
    assert.deepEqual(
      splitIntoChunks(
        text,
        'pdf',
        [0, 11].map((start) => ({ start, isMarkdown: false })),
      ).map(({ content, page }) => [content, page]),
      [
        ['Page one.', 1],
        ['Page two.\n\nStill two.', 2],
      ],
    )
  })

  test('of pages in Markdown have headings, which carry over to the next page', () => {
    const long = createWords(120)
    const pages = [
      `# One\n\n${long}\n\n## Two\n\n${long}`,
      `${long}\n\n${long}`,
      `${long}\n\n## 3\\* Three\n\n${long}`,
    ]
    const starts: PageStart[] = []
    let text = ''
    for (const [i, page] of pages.entries()) {
      starts.push({ start: text.length, isMarkdown: i !== 1 })
      text += `${page}\n\n`
    }
    const chunks = splitIntoChunks(text, 'pdf', starts)
    assertPlaced(text, chunks)
    assert.deepEqual(
      chunks.map(({ page, heading }) => [page, heading]),
      [
        [1, 'One'],
        [1, 'One > Two'],
        [2, 'One > Two'],
        [2, 'One > Two'],
        [3, 'One > Two'],
        [3, 'One > 3* Three'],
      ],
    )
  })

  test('of a long table repeat its header row', () => {
    const head = '| Ship | Fee |\n| --- | --- |\n'
    const rows = Array.from({ length: 100 }, (_, i) => `| Ship number ${i} | ${i} |\n`)
    const text = `## Fees\n\n${head}${rows.join('')}\nAfter\n`
    const chunks = splitIntoChunks(text, 'markdown')
    assert.ok(chunks.length > 1)
    assert.ok(chunks[0]!.content.startsWith(`## Fees\n\n${head}`))
    for (const { content, startOffset } of chunks)
      assert.ok(content.length <= MAX_CHUNK_CHARACTERS && startOffset >= 0)
    for (const { content } of chunks.slice(1)) assert.ok(content.startsWith(head), content)
    const found = chunks.flatMap(({ content }) =>
      content.split('\n').filter((line) => line.startsWith('| Ship number')),
    )
    assert.deepEqual(
      found,
      rows.map((row) => row.trim()),
    )
    assert.ok(chunks.at(-1)!.content.endsWith('\n\nAfter'))
    const wide = `| a |\n| --- |\n| ${'word '.repeat(1000)}|\n| b |\n`
    for (const { content } of splitIntoChunks(wide, 'markdown'))
      assert.ok(content.length <= MAX_CHUNK_CHARACTERS)
  })

  test('of every file of this project have correct positions', () => {
    for (const [path, format] of [
      ['README.md', 'markdown'],
      ['sql/schema.sql', 'code'],
      ['workers/threads/pools.ts', 'code'],
      ['edge/pages/docs/docs.js', 'code'],
      ['package-lock.json', 'text'],
    ] satisfies [string, Format][]) {
      const text = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
      const chunks = splitIntoChunks(text, format)
      let at = 0
      for (const { content, startOffset, endOffset } of chunks) {
        assert.equal(content, text.slice(startOffset, endOffset), path)
        assert.ok(content.length <= MAX_CHUNK_CHARACTERS, path)
        assert.equal(text.slice(at, startOffset).trim(), '', path)
        at = endOffset
      }
      assert.equal(text.slice(at).trim(), '', path)
    }
  })
})

describe('texts that could be slow', () => {
  const size = 2_000_000
  for (const [what, text, format] of [
    ['one line of code', `a(${'('.repeat(size)}`, 'code'],
    ['one line of spaces', ' '.repeat(size), 'code'],
    ['many lines', 'x\n'.repeat(size / 2), 'code'],
    [
      'deeper and deeper',
      Array.from({ length: 1500 }, (_, i) => `${' '.repeat(i)}if x {`).join('\n'),
      'code',
    ],
    ['a heading of spaces', `# ${' '.repeat(size)}x`, 'markdown'],
    ['a link of brackets', `# ${'['.repeat(size)}`, 'markdown'],
    ['many stops', '. '.repeat(size / 2), 'text'],
    ['rows of bars', `| a |\n| --- |\n${'|'.repeat(size / 2)}\n${'|\n'.repeat(size / 4)}`, 'markdown'],
    ['open tags', '<div>'.repeat(size / 5), 'html'],
    ['open brackets', '<'.repeat(size / 4), 'html'],
  ] as const) {
    test(`take linear time: ${what}`, () => {
      const before = process.cpuUsage()
      splitIntoChunks(text, format)
      // Splitting takes a tenth of a second. A quadratic splitter would take minutes.
      assert.ok(process.cpuUsage(before).user < 10_000_000)
    })
  }
})
