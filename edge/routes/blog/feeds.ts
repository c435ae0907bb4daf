import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { readFeed, readSitemap, readTaggedFeed } from '../../../sql/blog/feeds.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { CachedText } from '../../http/cached-text.ts'
import { matchesEtag } from '../../http/range.ts'
import type { Header } from '../../http/reply.ts'
import type { EdgeRequest } from '../../http/server.ts'
import { Answer, type RawInput, route } from '../../pipeline/route.ts'
import type { Feed, FeedPost } from './feed-formats.ts'
import { TagSlug } from './shapes.ts'

/** Feeds and the sitemap of public posts. */

const FEEDS = {
  '/feed.xml': { name: 'RSS 2.0 feed', type: 'application/rss+xml', write: 'writeRss' },
  '/atom.xml': { name: 'Atom feed', type: 'application/atom+xml', write: 'writeAtom' },
  '/feed.json': { name: 'JSON Feed', type: 'application/feed+json', write: 'writeJsonFeed' },
} as const

const SITEMAP_PATH = '/sitemap.xml'
const SITEMAP_TYPE = 'application/xml'
const NOT_MODIFIED = { 304: 'Not modified' } as const

const FEED_DESCRIPTION = `The newest 20 public posts, of one tag if \`tag\` is given. Their addresses follow \`BLOG_POST_URL\`. The content is \
HTML of the Markdown; a content of more than 30,000 characters is left out. \`If-None-Match\` saves the download of a known \
version.`

const feedRoutes = (Object.keys(FEEDS) as (keyof typeof FEEDS)[]).map((path) =>
  route({
    method: 'get',
    path,
    summary: `Get the ${FEEDS[path].name}`,
    description: FEED_DESCRIPTION,
    auth: 'public',
    query: z.object({ tag: TagSlug.optional() }),
    produces: FEEDS[path].type,
    alsoAnswers: NOT_MODIFIED,
    reads: 'list',
    mayLag: true,
    raw: async ({ query: { tag }, reader, edge: { settings }, ...input }) => {
      const { type, write } = FEEDS[path]
      const text = (await (tag === undefined
        ? reader.text(readFeed, [])
        : reader.text(readTaggedFeed, [tag])))!
      const posts = JSON.parse(text) as FeedPost[]
      const changedAt = findNewest(posts.map((post) => post.changed_at))
      return sendVersion(input, { key: `${path} ${tag ?? ''}`, type, source: text }, settings, async () => {
        const selfUrl = `${settings.publicBaseUrl}/api/v1/blog${path}${tag === undefined ? '' : `?${new URLSearchParams({ tag })}`}`
        return (await import('./feed-formats.ts'))[write](buildFeed(settings, selfUrl, changedAt, posts))
      })
    },
  }),
)

const sitemapRoute = route({
  method: 'get',
  path: SITEMAP_PATH,
  summary: 'Get the sitemap',
  description: 'The addresses of the newest 50,000 public posts, the maximum of a sitemap.',
  auth: 'public',
  produces: SITEMAP_TYPE,
  alsoAnswers: NOT_MODIFIED,
  reads: 'list',
  mayLag: true,
  raw: async ({ reader, edge: { settings }, ...input }) => {
    const text = (await reader.text(readSitemap, [])) ?? ''
    const lines = text === '' ? [] : text.split('\n')
    return sendVersion(input, { key: SITEMAP_PATH, type: SITEMAP_TYPE, source: text }, settings, async () =>
      (await import('./feed-formats.ts')).writeSitemap(lines, buildAddress(settings)),
    )
  },
})

export const syndicationRoutes = [...feedRoutes, sitemapRoute]

/** The parts of a response. */
interface Version {
  /** Identifies the feed. */
  readonly key: string
  readonly type: string
  /** The data as read from the database. */
  readonly source: string
}

// The last version of each feed. Rendering takes some milliseconds a post, and most requests are for the same version.
const cachedVersions = new Map<string, { readonly etag: string; readonly text: Promise<CachedText> }>()
const MAX_CACHED_VERSIONS = 20

/** Sends a feed, or 304 if the client has this version. Renders a new version once. */
async function sendVersion(
  { request, responder, head }: Pick<RawInput, 'responder' | 'head'> & { readonly request: EdgeRequest },
  { key, type, source }: Version,
  settings: Settings,
  write: () => Promise<Generator<string>>,
): Promise<Answer<unknown> | undefined> {
  const { title, postUrl } = settings.blog
  const identity = JSON.stringify([key, title, postUrl, settings.publicBaseUrl])
  const hash = createHash('sha256').update(identity).update('\0').update(source)
  const etag = `"${hash.digest('base64url').slice(0, 22)}"`
  const headers: Header[] = [
    // A weak tag, because all content codings share it.
    ['etag', `W/${etag}`],
    ['cache-control', 'no-cache'],
  ]
  if (matchesEtag(request.header('if-none-match'), etag)) return new Answer({ status: 304, headers })
  let cached = cachedVersions.get(identity)
  if (cached?.etag !== etag) {
    cachedVersions.delete(identity)
    if (cachedVersions.size >= MAX_CACHED_VERSIONS) cachedVersions.delete(cachedVersions.keys().next().value!)
    cached = { etag, text: collect(await write(), type) }
    cachedVersions.set(identity, cached)
  }
  const text = await cached.text
  return text.send(request, responder, (status, given) => head(status, [...given, ...headers]))
}

/** Joins the parts of a text. Other requests proceed between them. */
async function collect(parts: Generator<string>, type: string): Promise<CachedText> {
  const all: string[] = []
  for (const part of parts) {
    all.push(part)
    await setImmediate()
  }
  return new CachedText(all.join(''), `${type}; charset=utf-8`)
}

const findNewest = (times: readonly string[]): string | null =>
  times.reduce<string | null>((newest, time) => (newest === null || time > newest ? time : newest), null)

const buildAddress = ({ blog, publicBaseUrl }: Settings): Feed['addressOf'] => {
  const template = blog.postUrl ?? `${publicBaseUrl}/api/v1/blog/posts/{slug}`
  return (slug) => template.replaceAll('{slug}', slug)
}

function buildFeed(
  settings: Settings,
  selfUrl: string,
  changedAt: string | null,
  posts: readonly FeedPost[],
): Feed {
  const addressOf = buildAddress(settings)
  const { origin, hostname: host } = new URL(addressOf('x'))
  return { title: settings.blog.title, selfUrl, homeUrl: `${origin}/`, addressOf, host, changedAt, posts }
}
