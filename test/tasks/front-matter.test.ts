import { describe, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { createImports } from './import-help.ts'

const { assertPost } = createImports(await createTestDatabase())

const joinLines = (...all: readonly string[]): string => all.join('\n')
const NOON = '2020-01-02T12:00:00.000Z'
const DAY = '2020-01-02T00:00:00.000Z'

describe('families', () => {
  test('Jekyll', () =>
    assertPost(
      '_posts/2020-01-02-hello-world.md',
      joinLines(
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
      joinLines(
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
      joinLines(
        '---',
        'title: Hello',
        'date: 2020-01-02T12:00:00Z',
        'lastmod: 2021-01-01',
        'publishDate: 2020-02-01',
        'draft: false',
        'description: Short',
        'cover:',
        '  image: /cover.png',
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
        hero_image_url: '/cover.png',
        tag_slugs: ['one', 'two-words'],
      },
    ))
  test('Hugo in TOML', () =>
    assertPost(
      'hello.md',
      joinLines(
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
      joinLines(
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
      joinLines(
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
  test('Eleventy: JSON between fences, not written', () =>
    assertPost('hello.md', '---json\n{"title": "Hello", "permalink": false, "date": "2020-01-02"}\n---\nx', {
      title: 'Hello',
      slug: 'hello',
      status: 'draft',
      created_at: DAY,
    }))
  test('Zola', () =>
    assertPost(
      'content/2020-01-02_hello/index.md',
      joinLines(
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
      joinLines(
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
      joinLines(
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
      joinLines(
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
      title: 'The title',
      slug: 'hello-world',
      published_at: DAY,
      content: '# The *title* #\n\nText',
    })
    await assertPost('hello-world.md', 'Text', { title: 'Hello world', content: 'Text' })
  })
})
