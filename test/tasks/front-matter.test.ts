import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { testDatabase } from '../database.ts'
import { imports } from './import-help.ts'

const { one } = imports(await testDatabase())

interface Expected {
  readonly [key: string]: unknown
}

/** Imports a file, and looks at what is expected of its post. */
async function assertPost(path: string, text: string, expected: Expected): Promise<void> {
  const post = await one(path, text)
  assert.equal(typeof post, 'object', String(post))
  const found = Object.fromEntries(Object.keys(expected).map((key) => [key, post[key]]))
  assert.deepEqual(found, expected)
}

const lines = (...all: readonly string[]): string => all.join('\n')
const NOON = '2020-01-02T12:00:00.000Z'
const DAY = '2020-01-02T00:00:00.000Z'

describe('families', () => {
  test('Jekyll', () =>
    assertPost(
      '_posts/2020-01-02-hello-world.md',
      lines(
        '---',
        'layout: post',
        'title: "Hello"',
        'categories: news releases',
        'tags: a b',
        'author: ann',
        'excerpt: Short',
        'image: /a.png',
        'last_modified_at: x',
        '---',
        'Text',
      ),
      {
        title: 'Hello',
        slug: 'hello-world',
        status: 'published',
        published_at: DAY,
        created_at: DAY,
        tag_slugs: ['a', 'b', 'news', 'releases'],
        author_name: 'ann',
        excerpt: 'Short',
        hero_image_url: '/a.png',
        content: 'Text',
      },
    ))
  test('Jekyll: a draft, an address, a picture with a path', () =>
    assertPost(
      '_drafts/hello.md',
      lines(
        '---',
        'title: Hello',
        'permalink: /2020/01/02/good-bye.html',
        'image:',
        '  path: /b.png',
        '---',
        '',
      ),
      { slug: 'good-bye', status: 'draft', created_at: DAY, published_at: null, hero_image_url: '/b.png' },
    ))
  test('Jekyll: not published', () =>
    assertPost('2020-01-02-x.md', '---\npublished: false\n---\n', { status: 'draft', slug: 'x', title: 'X' }))
  test('Hugo in YAML', () =>
    assertPost(
      'content/posts/hello/index.md',
      lines(
        '---',
        'title: Hello',
        'date: 2020-01-02T12:00:00Z',
        'lastmod: 2021-01-01',
        'publishDate: 2020-02-01',
        'draft: false',
        'description: Short',
        'cover:',
        '  image: cover.png',
        'tags: [One, "Two words"]',
        '---',
        'Text',
      ),
      {
        slug: 'hello',
        created_at: NOON,
        published_at: NOON,
        updated_at: '2021-01-01T00:00:00.000Z',
        status: 'published',
        excerpt: 'Short',
        hero_image_url: 'cover.png',
        tag_slugs: ['one', 'two-words'],
      },
    ))
  test('Hugo in TOML', () =>
    assertPost(
      'hello.md',
      lines(
        '+++',
        'title = "Hello"',
        'date = 2020-01-02T13:00:00+01:00',
        'draft = true',
        'slug = "Good Bye"',
        'tags = ["One", "Two"]',
        'categories = ["Three"]',
        '+++',
        'Text',
      ),
      {
        slug: 'good-bye',
        created_at: NOON,
        published_at: null,
        status: 'draft',
        tag_slugs: ['one', 'three', 'two'],
      },
    ))
  test('Hugo in JSON', () =>
    assertPost(
      'hello.md',
      '{\n  "title": "A } \\" in it",\n  "date": "2020-01-02T12:00:00Z",\n  "tags": ["One"],\n  "n": {"m": {}}\n}\n\nText',
      {
        title: 'A } " in it',
        published_at: NOON,
        tag_slugs: ['one'],
        content: '\nText',
      },
    ))
  test('Astro', () =>
    assertPost(
      'src/content/blog/hello.md',
      lines(
        '---',
        'title: Hello',
        "pubDate: 'Jan 02 2020'",
        'updatedDate: x',
        'heroImage: a',
        'image:',
        '  url: /a.png',
        '  alt: x',
        'author: ann',
        'tags: ["astro"]',
        '---',
        'x',
      ),
      {
        published_at: DAY,
        hero_image_url: '/a.png',
        tag_slugs: ['astro'],
      },
    ))
  test('Eleventy', () =>
    assertPost(
      'posts/2020-01-02-hello.md',
      lines(
        '---',
        'title: Hello',
        'date: Last Modified',
        'permalink: "/{{ title | slugify }}/"',
        'tags:',
        '  - posts',
        '  - eleventy',
        '---',
        'x',
      ),
      {
        slug: 'hello',
        published_at: DAY,
        tag_slugs: ['eleventy', 'posts'],
      },
    ))
  test('Eleventy: JSON between fences, no address', () =>
    assertPost('hello.md', '---json\n{"title": "Hello", "permalink": false, "date": "2020-01-02"}\n---\nx', {
      title: 'Hello',
      slug: 'hello',
      published_at: DAY,
    }))
  test('Zola', () =>
    assertPost(
      'content/2020-01-02_hello/index.md',
      lines(
        '+++',
        'title = "Hello"',
        'authors = ["Ann", "Bob"]',
        'updated = 2021-01-01',
        '[taxonomies]',
        'tags = ["Rust", "Zola"]',
        'categories = ["Web"]',
        '[extra]',
        'x = 1',
        '+++',
        'x',
      ),
      {
        slug: 'hello',
        published_at: DAY,
        updated_at: '2021-01-01T00:00:00.000Z',
        author_name: 'Ann, Bob',
        tag_slugs: ['rust', 'web', 'zola'],
      },
    ))
  test('Zola: day and slug in a path', () =>
    assertPost('hello.md', '+++\npath = "2020/01/02/Good-Bye"\ntitle = "x"\n+++\n', {
      slug: 'good-bye',
      published_at: DAY,
    }))
  test('Hexo', () =>
    assertPost(
      'source/_posts/日本語テスト.md',
      lines(
        'title: 日本語テスト',
        'date: 2020-01-02 12:00:00',
        'updated: 2020-01-03 12:00:00',
        'tags:',
        '- One',
        'categories:',
        '- [Sports, Baseball]',
        '- [Play]',
        '---',
        '',
        'Text',
        '---',
        'more',
      ),
      {
        title: '日本語テスト',
        slug: 'ri-ben-yu-tesuto',
        published_at: NOON,
        tag_slugs: ['baseball', 'one', 'play', 'sports'],
        content: '\nText\n---\nmore',
      },
    ))
  test('Pelican', () =>
    assertPost(
      'content/hello.md',
      lines(
        'Title: Hello: World',
        'Date: 2020-01-02 12:00',
        'Modified: 2020-01-03',
        'Category: Python',
        'Tags: one, two words,',
        '   three',
        'Slug: good-bye',
        'Authors: Ann, Bob',
        'Summary: Short',
        'Status: draft',
        '',
        'Text',
        '',
        'Note: more',
      ),
      {
        title: 'Hello: World',
        slug: 'good-bye',
        created_at: NOON,
        updated_at: '2020-01-03T00:00:00.000Z',
        status: 'draft',
        tag_slugs: ['one', 'python', 'three', 'two-words'],
        author_name: 'Ann, Bob',
        excerpt: 'Short',
        content: 'Text\n\nNote: more',
      },
    ))
  test('Ghost', () =>
    assertPost(
      'hello.md',
      lines(
        '---',
        'title: Hello',
        'slug: good-bye',
        'date_published: x',
        'published_at: 2020-01-02T12:00:00.000Z',
        'feature_image: https://x/y.png',
        'custom_excerpt: Short',
        'meta_title: M',
        'meta_description: D',
        'status: published',
        'tags:',
        '  - name: Getting Started',
        '    slug: getting-started',
        'authors:',
        '  - name: Ann',
        '---',
        'x',
      ),
      {
        published_at: NOON,
        hero_image_url: 'https://x/y.png',
        excerpt: 'Short',
        seo_title: 'M',
        seo_description: 'D',
        tag_slugs: ['getting-started'],
        author_name: 'Ann',
      },
    ))
  test('none at all: a heading, or the name of the file', async () => {
    await assertPost('2020-01-02-hello-world.md', '# The *title* #\n\nText', {
      title: 'The *title*',
      slug: 'hello-world',
      published_at: DAY,
      content: '# The *title* #\n\nText',
    })
    await assertPost('hello-world.md', 'Text', { title: 'Hello world', content: 'Text' })
  })
})

describe('the odd', () => {
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
  test('what follows is kept byte for byte', async () => {
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
  test('a block of nothing but comments', () =>
    assertPost('x.md', '---\n# nothing\n---\nText', { content: 'Text' }))
  test('that is not closed', async () => {
    for (const text of ['---\ntitle: x\n\nText', '+++\ntitle = "x"\n', '{"title": "x"\n\nText'])
      assert.equal(await one('x.md', text), 'The front matter is not closed')
  })
  test('a line across the page is no front matter', async () => {
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
  test('what looks like its end within a text is none', () =>
    assertPost('x.md', '---\ntitle: "x"\nexcerpt: "a\u2028---\u2029..."\n---\nText', {
      excerpt: 'a\u2028---\u2029...',
      content: 'Text',
    }))
  test('of a key that comes twice the last counts', () =>
    assertPost('x.md', '---\ntitle: one\ntitle: two\n---\n', { title: 'two' }))
  test('a key twice in TOML is a mistake', async () =>
    assert.match(
      await one('x.md', '+++\ntitle = "one"\ntitle = "two"\n+++\n'),
      /^The front matter is not valid TOML: /,
    ))
  test('what is not its language is named', async () => {
    assert.match(await one('x.md', '---\ntitle: [\n---\n'), /^The front matter is not valid YAML: /)
    assert.match(await one('x.md', '---\ntitle: "a\n---\n'), /^The front matter is not valid YAML: /)
    assert.match(await one('x.md', '{"title": x}\n'), /^The front matter is not valid JSON: /)
  })
  test('a text that goes on at the beginning of a line', () =>
    assertPost('x.md', '---\ntitle: "one\ntwo"\nslug: s\n---\n', { title: 'one two', slug: 's' }))
  test('code is no front matter that is read here', async () =>
    assert.equal(
      await one('x.md', '---js\nlet title = 1\n---\n'),
      'The front matter is in a language that is not read here: js',
    ))
  test('scalars are the text that they are written as', async () => {
    for (const title of ['1.10', '2020-01-02', 'true', '0x1F', '1e3', '12:30', '.5', '017'])
      await assertPost('x.md', `---\ntitle: ${title}\n---\n`, { title })
  })
  test('texts in every form of YAML', async () => {
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
  test('keys are known however they are spelled', async () => {
    for (const key of ['hero_image_url', 'heroImageUrl', 'Hero-Image-URL'])
      await assertPost('x.md', `---\n${key}: /a.png\n---\n`, { hero_image_url: '/a.png' })
  })
  test('tags in every form', async () => {
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
  test('flags in every form', async () => {
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
  test('a date that can’t be read is named', async () => {
    assert.equal(await one('x.md', '---\ndate: soon\n---\n'), "date: can't be read as a date")
    assert.equal(await one('x.md', '---\nlastmod: 2020-02-30\n---\n'), "lastmod: can't be read as a date")
  })
  test('limits: what describes is cut, what is the post itself is refused', async () => {
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
      [`image: ${'i'.repeat(1025)}`, 'hero_image_url: must have at most 1024 characters'],
      [`tags: ["${'t'.repeat(81)}"]`, 'tags: must have at most 80 characters each'],
      [`tags: [${Array.from({ length: 101 }, (_, i) => `t${i}`)}]`, 'tags: must be at most 100'],
      ['title: "a\\0b"', 'title: must not hold the character NUL'],
      ['title: "a\\ud800b"', 'title: must not hold half a character'],
    ] as const)
      assert.equal(await one('x.md', `---\n${text}\n---\n`), message)
    assert.equal(await one('x.md', 'x'.repeat(1_000_001)), 'content: must have at most 1000000 characters')
    assert.equal((await one('x.md', 'x'.repeat(1_000_000))).content.length, 1_000_000)
  })
  test('what would take long to parse is refused', async () => {
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
  test('keys that are called like what every object has are keys like others', () =>
    assertPost('x.md', '---\n__proto__: {title: y}\nconstructor: x\ntoString: z\ntitle: x\n---\n', {
      title: 'x',
    }))
})
