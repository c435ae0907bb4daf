import assert from 'node:assert/strict'
import { createZip } from '../zip.ts'
import { type Child, startChild } from './children.ts'
import { formatRequest, type LoadResult, ORDER_DEFAULTS, startGenerator } from './load/load.ts'
import type { Finding, Measured } from './report.ts'
import { queryRows, type Stack, signIn, signUp } from './stack.ts'
import { rotate } from './stats.ts'
import { waitUntilQuiet } from './usage.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7)
const IMPORTS = Number(process.env.BENCH_ROUNDS ?? 5)
const POSTS = 1000
const POOL_SIZES = (process.env.BENCH_POOL_SIZES ?? '2,4,8,16').split(',').map(Number)
const LIST_PATH = '/api/v1/blog/posts'

interface Server {
  readonly name: string
  readonly child: Child
}

/** Compares the public list of 20 out of 10,000 tagged posts with Fastify, and measures the import of 1,000 posts. */
export async function measureBlog(stack: Stack): Promise<Measured> {
  const lists = await measureLists(stack)
  const imports = await measureImports(stack)
  return {
    rounds: ROUNDS,
    findings: [...lists.findings, imports],
    notes: [
      ...lists.notes,
      `Imports: ${POSTS} posts of 3 KB with 3 tags in a zip archive, from POST to answer.`,
    ],
    details: lists.details,
  }
}

async function measureLists(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  await queryRows(url, INSERT_POSTS)
  await queryRows(url, 'vacuum analyze')
  const edge = await stack.edge(url)
  const generator = await startGenerator()
  const measure = ({ child }: Server): Promise<LoadResult> =>
    generator.run({
      ...ORDER_DEFAULTS,
      port: child.ready.port!,
      head: formatRequest('GET', LIST_PATH, null),
      serverPids: [child.pid],
      postmaster: stack.postmaster,
    })
  const [ordinary, same] = [
    await startFastest(url, 'rows', measure),
    await startFastest(url, 'ours', measure),
  ]
  const servers: Server[] = [{ name: 'edge', child: edge }, ordinary, same]
  const bytes = await assertSamePosts(servers)
  const results = new Map<string, LoadResult[]>(servers.map(({ name }) => [name, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const server of rotate(servers, round)) results.get(server.name)!.push(await measure(server))
  await Promise.all([generator.stop(), ordinary.child.stop(), same.child.stop()])
  return { rounds: ROUNDS, ...summarize(results, ordinary, same, bytes) }
}

function summarize(
  results: ReadonlyMap<string, readonly LoadResult[]>,
  ordinary: Server,
  same: Server,
  bytes: number,
): Omit<Measured, 'rounds'> {
  const rate = (name: string): number[] => results.get(name)!.map(({ perSecond }) => perSecond)
  const cpu = (name: string, of: 'server' | 'postgres'): Finding => ({
    name: `CPU of ${of === 'server' ? name : `PostgreSQL behind ${name}`}`,
    unit: 'µs/request',
    values: results.get(name)!.map(({ cpuMicroseconds }) => cpuMicroseconds[of]),
  })
  const against = (server: Server): Finding => ({
    name: 'list of 20 of 10,000 posts',
    unit: 'requests/s',
    values: rate('edge'),
    reference: { name: server.name, values: rate(server.name) },
  })
  return {
    findings: [
      { ...against(ordinary), target: { of: 'ratio', atLeast: 3 } },
      against(same),
      ...[...results.keys()].flatMap((name) => [cpu(name, 'server'), cpu(name, 'postgres')]),
    ],
    notes: [`Lists: the same ${bytes} bytes of posts from every server; 64 connections.`],
    details: Object.fromEntries(results),
  }
}

// Inserts posts of about two kilobytes, each with three of 200 tags.
const INSERT_POSTS = `
  with tags as (insert into blog_tag (name, slug) select 'Tag ' || n, 'tag-' || n from generate_series(1, 200) n returning id),
    posts as (insert into blog_post (title, slug, content, excerpt, status, author_name, created_at, published_at)
      select 'Post number ' || n, 'post-' || n, (select string_agg('Line ' || l || ' of post ' || n || ', with "quotes" and *marks*.' || chr(10), '')
        from generate_series(1, 40) l), 'About post ' || n, 'published', 'Ann', now() - n * interval '1 hour', now() - n * interval '1 hour'
      from generate_series(1, 10000) n returning id)
  insert into blog_post_tag (post_id, tag_id) select distinct p.id, t.id from posts p, generate_series(0, 2) k,
    lateral (select id from tags offset (p.id * 7 + k * 61) % 200 limit 1) t`

/**
 * Asserts that all servers return the same posts, regardless of JSON formatting. Returns the size of the body in bytes.
 */
async function assertSamePosts(servers: readonly Server[]): Promise<number> {
  const bodies = await Promise.all(
    servers.map(async ({ child }) =>
      (await fetch(`http://127.0.0.1:${child.ready.port}${LIST_PATH}`)).text(),
    ),
  )
  // The ordinary server has no cursor for the next page.
  const lists = bodies.map((body) => ({ ...JSON.parse(body), next: null }))
  for (const list of lists) assert.deepEqual(list, lists[0])
  const { posts, total } = JSON.parse(bodies[0]!) as { posts: { tags: unknown[] }[]; total: number }
  assert.deepEqual([posts.length, total, posts.every(({ tags }) => tags.length === 3)], [20, 10_000, true])
  return Buffer.byteLength(bodies[0]!)
}

/** Measures the server at each pool size, and returns it started with the fastest one. */
async function startFastest(
  url: string,
  statement: string,
  measure: (server: Server) => Promise<LoadResult>,
): Promise<Server> {
  const start = (size: number): Promise<Child> =>
    startChild(new URL('./servers/fastify-blog.ts', import.meta.url), {
      DATABASE_URL: url,
      POOL_SIZE: String(size),
      STATEMENT: statement,
      NODE_ENV: 'production',
    })
  const rates: number[] = []
  for (const size of POOL_SIZES) {
    const child = await start(size)
    rates.push((await measure({ name: '', child })).perSecond)
    await child.stop()
  }
  const size = POOL_SIZES[rates.indexOf(Math.max(...rates))]!
  const name =
    statement === 'ours' ? `Fastify with our statement, pool of ${size}` : `Fastify + pg, pool of ${size}`
  return { name, child: await start(size) }
}

async function measureImports(stack: Stack): Promise<Finding> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  await signUp(edge.port, 'moderator@example.com')
  await queryRows(url, `update account set role = 'moderator'`)
  const token = await signIn(edge.port, 'moderator@example.com')
  await stack.worker(url, { WORKER_QUEUES: 'blog' })
  const zip = createZip(
    Array.from({ length: POSTS }, (_, i) => [`posts/post-${i}.md`, renderPost(i)] as const),
  )
  const values: number[] = []
  for (let round = 0; round <= IMPORTS; round++) {
    await queryRows(url, 'truncate blog_post, blog_tag, blog_post_count cascade')
    await waitUntilQuiet()
    const startedAt = performance.now()
    await postImport(edge.port, token, zip)
    // The first import is not counted, because it loads modules.
    if (round > 0) values.push((performance.now() - startedAt) / 1000)
  }
  return { name: `import of ${POSTS} posts`, unit: 's', values, target: { of: 'value', atMost: 5 } }
}

async function postImport(port: number, token: string, zip: Buffer): Promise<void> {
  const form = new FormData()
  form.set('file', new File([zip as Uint8Array<ArrayBuffer>], 'posts.zip'))
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/blog/import`, {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${token}` },
  })
  const result = (await response.json()) as { created?: number }
  if (response.status !== 200 || result.created !== POSTS)
    throw new Error(`import: ${response.status} ${JSON.stringify(result)}`)
}

function renderPost(i: number): string {
  const lines = Array.from(
    { length: 60 },
    (_, l) => `Line ${l} of post ${i}: *some* text with [links](https://example.com/${l}).`,
  )
  const tags = [i % 50, (i * 7) % 50, (i * 13) % 50].map((n) => `  - Tag ${n}\n`).join('')
  return `---\ntitle: "Post number ${i}"\ndate: 2020-01-02 03:04:05 +0100\ndescription: About it\ntags:\n${tags}---\n\n${lines.join('\n')}\n`
}
