import { renderHtml } from './html.ts'

/** Writes feeds and sitemaps of posts. */

/** A post as `readFeed` returns it. */
export interface FeedPost {
  readonly id: number
  readonly title: string
  readonly slug: string
  readonly excerpt: string | null
  /** Null if it is too long for a feed. */
  readonly content: string | null
  readonly author_name: string | null
  readonly published_at: string
  /** Time of the last change that the public saw. */
  readonly changed_at: string
  readonly hero_image_url: string | null
  readonly tags: readonly { readonly name: string; readonly slug: string }[]
}

export interface Feed {
  readonly title: string
  /** The address of this feed. */
  readonly selfUrl: string
  /** The start page of the site. */
  readonly homeUrl: string
  readonly addressOf: (slug: string) => string
  /** Host in the ids of posts. */
  readonly host: string
  /** Time of the newest change; null without posts. */
  readonly changedAt: string | null
  readonly posts: readonly FeedPost[]
}

// Characters that XML 1.0 does not allow, not even as references.
const FORBIDDEN_IN_XML = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu
const XML_ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

const escapeXml = (text: string): string =>
  text.replace(FORBIDDEN_IN_XML, '').replace(/[&<>"']/g, (character) => XML_ENTITIES[character]!)

const element = (name: string, text: string | null, attributes = ''): string =>
  text === null ? '' : `<${name}${attributes}>${escapeXml(text)}</${name}>\n`

const attribute = (name: string, value: string): string => ` ${name}="${escapeXml(value)}"`

const XML_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'

// A constant id keeps a post the same in readers when its slug changes (RFC 4151).
const idOf = ({ host }: Feed, { id }: FeedPost): string => `tag:${host},2026:blog-post-${id}`

const htmlOf = ({ addressOf }: Feed, { content, slug }: FeedPost): string | null =>
  content === null ? null : renderHtml(content, addressOf(slug))

/** RSS 2.0 (https://www.rssboard.org/rss-specification). */
export function* writeRss(feed: Feed): Generator<string> {
  const { title, selfUrl, homeUrl, changedAt } = feed
  yield `${XML_HEAD}<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel>
${element('title', title)}${element('link', homeUrl)}${element('description', title)}<atom:link rel="self" type="application/rss+xml"${attribute('href', selfUrl)}/>
${element('lastBuildDate', changedAt === null ? null : new Date(changedAt).toUTCString())}`
  for (const post of feed.posts) {
    const categories = post.tags.map(({ name }) => element('category', name)).join('')
    yield `<item>
${element('title', post.title)}${element('link', feed.addressOf(post.slug))}${element('guid', idOf(feed, post), ' isPermaLink="false"')}\
${element('pubDate', new Date(post.published_at).toUTCString())}${element('dc:creator', post.author_name)}${categories}\
${element('description', post.excerpt)}${element('content:encoded', htmlOf(feed, post))}</item>
`
  }
  yield '</channel>\n</rss>\n'
}

/** Atom (RFC 4287). */
export function* writeAtom(feed: Feed): Generator<string> {
  const { title, selfUrl, homeUrl, changedAt } = feed
  yield `${XML_HEAD}<feed xmlns="http://www.w3.org/2005/Atom">
${element('title', title)}${element('id', selfUrl)}<link rel="self" type="application/atom+xml"${attribute('href', selfUrl)}/>
<link rel="alternate"${attribute('href', homeUrl)}/>
${element('updated', changedAt ?? '1970-01-01T00:00:00.000Z')}<author>${element('name', title)}</author>
`
  for (const post of feed.posts) {
    const author = post.author_name === null ? '' : `<author>${element('name', post.author_name)}</author>\n`
    const categories = post.tags.map(
      ({ name, slug }) => `<category${attribute('term', slug)}${attribute('label', name)}/>\n`,
    )
    yield `<entry>
${element('title', post.title)}${element('id', idOf(feed, post))}<link rel="alternate"${attribute('href', feed.addressOf(post.slug))}/>
${element('published', post.published_at)}${element('updated', post.changed_at)}${author}${categories.join('')}\
${element('summary', post.excerpt)}${element('content', htmlOf(feed, post), ' type="html"')}</entry>
`
  }
  yield '</feed>\n'
}

/** JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/). */
export function* writeJsonFeed(feed: Feed): Generator<string> {
  const { title, selfUrl: feed_url, homeUrl: home_page_url } = feed
  const head = { version: 'https://jsonfeed.org/version/1.1', title, home_page_url, feed_url }
  yield `${JSON.stringify(head).slice(0, -1)},"items":[`
  for (const [index, post] of feed.posts.entries()) {
    const url = feed.addressOf(post.slug)
    const html = htmlOf(feed, post)
    const item = {
      ...{ id: idOf(feed, post), url, title: post.title },
      ...(html === null ? { content_text: post.excerpt ?? post.title } : { content_html: html }),
      ...(post.excerpt === null ? {} : { summary: post.excerpt }),
      ...(post.hero_image_url === null ? {} : { image: new URL(post.hero_image_url, url).href }),
      ...{ date_published: post.published_at, date_modified: post.changed_at },
      ...(post.author_name === null ? {} : { authors: [{ name: post.author_name }] }),
      ...(post.tags.length === 0 ? {} : { tags: post.tags.map(({ name }) => name) }),
    }
    yield `${index === 0 ? '' : ','}${JSON.stringify(item)}`
  }
  yield ']}'
}

// Entries of a sitemap between two pauses.
const SITEMAP_BATCH = 1000

/** A sitemap (https://www.sitemaps.org/protocol.html) of lines that `readSitemap` returns. */
export function* writeSitemap(lines: readonly string[], addressOf: Feed['addressOf']): Generator<string> {
  yield `${XML_HEAD}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n`
  for (let from = 0; from < lines.length; from += SITEMAP_BATCH) {
    const batch = lines.slice(from, from + SITEMAP_BATCH).map((line) => {
      const [slug, changedAt] = line.split(' ') as [string, string]
      return `<url>\n${element('loc', addressOf(slug))}${element('lastmod', changedAt)}</url>\n`
    })
    yield batch.join('')
  }
  yield '</urlset>\n'
}
