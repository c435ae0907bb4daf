import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { toMarkdown } from '../../tasks/blog/markdown.ts'
import { createTestDatabase } from '../database.ts'
import { createImports } from './import-help.ts'

const { one, assertPost } = createImports(await createTestDatabase())

describe('unusual front matter', () => {
  const CONTENTS = [
    '',
    '\n',
    '\n\nText\n',
    'Text',
    '\r\n\r\nText\r\n',
    '---\nmore\n---\n',
    '\tx  \n\n\n',
    '\uFEFFx',
    '\u2028\u0085',
    '+++\n',
    '{"a":1}',
    'title: x\n',
  ]
  test('the text after it is kept byte for byte', async () => {
    for (const content of CONTENTS) {
      for (const [open, close] of [
        ['---\ntitle: x\n', '---\n'],
        ['\uFEFF---\r\ntitle: x\r\n', '---\r\n'],
        ['+++\ntitle = "x"\n', '+++\n'],
        ['--- \ntitle: x\n', '...\n'],
        ['title: x\ndate: 2020-01-02\n', '---\n'],
        ['Title: x\n', '\n'],
        ['{"title": "x"}', '\n'],
      ] as const)
        await assertPost('x.md', `${open}${close}${content}`, { title: 'x', content })
    }
  })
  test('an exported multi-line text is read back unchanged', async () => {
    for (const line of ['', ' ', '\t', '---', '...', '\\', ' \\', '# x', '\u2028', '\r'])
      for (const excerpt of [
        `A line that is rather long\n${line}\nand another one`,
        `${line}\n${line}\n${line}`,
      ]) {
        const file = toMarkdown({ title: 'x', slug: 'x', excerpt, content: 'y' })
        await assertPost('x.md', file, { title: 'x', excerpt, content: 'y' })
      }
  })
  test('front matter that ends with the file', async () => {
    for (const text of [
      '---\ntitle: x\n---',
      '+++\ntitle="x"\n+++',
      'title: x\n---',
      'Title: x',
      '{"title":"x"}',
    ])
      await assertPost('x.md', text, { title: 'x', content: '' })
  })
  test('an empty block', () => assertPost('x.md', '---\n---\nText', { title: 'X', content: 'Text' }))
  test('a block with only comments', () =>
    assertPost('x.md', '---\n# nothing\n---\nText', { content: 'Text' }))
  test('an unclosed block', async () => {
    for (const text of ['---\ntitle: x\n\nText', '+++\ntitle = "x"\n', '{"title": "x"\n\nText'])
      assert.equal(await one('x.md', text), 'The front matter is not closed')
  })
  test('a horizontal rule is no front matter', async () => {
    for (const text of [
      '---\n\nText',
      '---\nText\n---\nmore',
      '---',
      'A heading\n---\nText',
      '{% include x %}\nText',
      '{{ x }}',
      'Note: text\n\nmore',
      'Remember: this\n---\nText',
    ])
      await assertPost('x.md', text, { content: text })
  })
  test('a delimiter inside a text does not end it', () =>
    assertPost('x.md', '---\ntitle: "x"\nexcerpt: "a\u2028---\u2029..."\n---\nText', {
      excerpt: 'a\u2028---\u2029...',
      content: 'Text',
    }))
  test('the last of two equal keys wins', () =>
    assertPost('x.md', '---\ntitle: one\ntitle: two\n---\n', { title: 'two' }))
  test('two equal keys are an error in TOML', async () =>
    assert.match(
      await one('x.md', '+++\ntitle = "one"\ntitle = "two"\n+++\n'),
      /^The front matter is not valid TOML: /,
    ))
  test('the expected language is named in the error', async () => {
    assert.match(await one('x.md', '---\ntitle: [\n---\n'), /^The front matter is not valid YAML: /)
    assert.match(await one('x.md', '---\ntitle: "a\n---\n'), /^The front matter is not valid YAML: /)
    assert.match(await one('x.md', '{"title": x}\n'), /^The front matter is not valid JSON: /)
  })
  test('a text that continues at the start of a line', () =>
    assertPost('x.md', '---\ntitle: "one\ntwo"\nslug: s\n---\n', { title: 'one two', slug: 's' }))
  test('executable front matter is not read', async () =>
    assert.equal(
      await one('x.md', '---js\nlet title = 1\n---\n'),
      'The front matter language is not supported: js',
    ))
  test('scalars keep their literal text', async () => {
    for (const title of ['1.10', '2020-01-02', 'true', '0x1F', '1e3', '12:30', '.5', '017'])
      await assertPost('x.md', `---\ntitle: ${title}\n---\n`, { title })
  })
  test('all text styles of YAML are read', async () => {
    for (const written of [
      `'it''s'`,
      `"it's"`,
      `it's`,
      `>-\n  it's`,
      `|-\n  it's`,
      `"it\\u0027s"`,
      `!!str it's`,
      `&a it's`,
    ])
      await assertPost('x.md', `---\ntitle: ${written}\n---\n`, { title: `it's` })
  })
  test('keys match in any spelling', async () => {
    for (const key of ['hero_image_url', 'heroImageUrl', 'Hero-Image-URL'])
      await assertPost('x.md', `---\n${key}: /a.png\n---\n`, { hero_image_url: '/a.png' })
  })
  test('tags are read in every form', async () => {
    for (const [written, tag_slugs] of [
      ['a', ['a']],
      ['a b', ['a', 'b']],
      ['a, b c', ['a', 'b-c']],
      ['"a,b"', ['a', 'b']],
      ['[a, b]', ['a', 'b']],
      ['[a, A, " a "]', ['a']],
      ['\n  - a\n  - b c', ['a', 'b-c']],
      ['\n  - C\n  - C++\n  - C#', ['c', 'c-plus-plus', 'c-sharp']],
      ['[]', []],
      ['', []],
      ['null', []],
      ['[1, 2.0, true]', ['1', '2-0', 'true']],
    ] as const)
      await assertPost('x.md', `---\ntags: ${written}\n---\n`, { tag_slugs })
  })
  test('flags are read in every form', async () => {
    for (const [written, status] of [
      ['draft: true', 'draft'],
      ['draft: yes', 'draft'],
      ['draft: "true"', 'draft'],
      ['Draft: True', 'draft'],
      ['draft: false', 'published'],
      ['published: false', 'draft'],
      ['published: true', 'published'],
      ['published: 2020-01-02', 'published'],
      ['status: Draft', 'draft'],
      ['status: publish', 'published'],
      ['status: archived', 'archived'],
      ['status: hidden', 'draft'],
    ] as const)
      await assertPost('x.md', `---\n${written}\n---\n`, { status })
    assert.equal(
      await one('x.md', '---\nstatus: nonsense\n---\n'),
      'status: must be draft, published or archived',
    )
  })
  test('an invalid date is named', async () => {
    assert.equal(await one('x.md', '---\ndate: soon\n---\n'), 'date: is not a recognized date')
    await assertPost('x.md', '---\ndate: 2020-01-02\nlastmod: 2020-02-30\n---\n', {
      updated_at: '2020-01-02T00:00:00.000Z',
    })
  })
  test('limits cut descriptions, and reject posts', async () => {
    const { excerpt, seo_title, seo_description } = await one(
      'x.md',
      `---\ndescription: ${'d '.repeat(400)}\nseo_title: ${'s'.repeat(300)}\nmeta_description: ${'m'.repeat(400)}\n---\n`,
    )
    assert.deepEqual(
      [excerpt.length <= 500, excerpt.at(-1), seo_title.length, seo_description.length],
      [true, '…', 200, 320],
    )
    for (const [text, message] of [
      [`title: ${'t'.repeat(201)}`, 'title: must have at most 200 characters'],
      [`slug: ${'s'.repeat(221)}`, 'slug: must have at most 220 characters'],
      ['title: "a\\0b"', 'title: must not contain a NUL character'],
      ['title: "a\\ud800b"', 'title: must not contain a lone surrogate'],
    ] as const)
      assert.equal(await one('x.md', `---\n${text}\n---\n`), message)
    for (const beside of [
      'cover.png',
      './cover.jpg',
      '../images/a.webp',
      '//evil.example/a.png',
      'ftp://example.com/a.png',
      'javascript:alert(1)',
      'data:image/png;base64,AA',
      `/${'i'.repeat(1024)}`,
    ])
      assert.equal((await one('x.md', `---\nimage: ${beside}\n---\n`)).hero_image_url, null, beside)
    const { tag_slugs } = await one(
      'x.md',
      `---\ntags: [${Array.from({ length: 101 }, (_, i) => `t${i}`)}]\n---\n`,
    )
    assert.equal(tag_slugs.length, 100)
    const { tags } = await one('x.md', `---\ntags: ["${'t'.repeat(81)}"]\n---\n`)
    assert.deepEqual([tags[0].name.length, tags[0].slug.length], [80, 81])
    assert.equal(await one('x.md', 'x'.repeat(1_000_001)), 'content: must have at most 1000000 characters')
    assert.equal((await one('x.md', 'x'.repeat(1_000_000))).content.length, 1_000_000)
  })
  test('input that is slow to parse is rejected', async () => {
    assert.equal(await one('x.md', `---\na: ${'x'.repeat(300_000)}\n---\n`), 'The front matter is too long')
    assert.match(await one('x.md', `---\na: ${'['.repeat(50_000)}\n---\n`), /front matter/)
    const bomb = [
      '---',
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefghi'.split('').map((c, i) => `${c}: &${c} [${Array(9).fill(`*${'abcdefgh'[i]}`)}]`),
      '---',
      '',
    ]
    assert.match(await one('x.md', bomb.join('\n')), /front matter/)
  })
  test('names of object properties are ordinary keys', () =>
    assertPost('x.md', '---\n__proto__: {title: y}\nconstructor: x\ntoString: z\ntitle: x\n---\n', {
      title: 'x',
    }))
})
