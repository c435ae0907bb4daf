import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { createZip } from '../zip.ts'
import { describeMistakes, type Expected, type Found, readExpected } from './import-checker.ts'
import type { Measured } from './report.ts'
import { queryRows, type Stack, signUp } from './stack.ts'

/**
 * `npm run bench -- import DIR` imports every Markdown file of the blogs in a folder through a real edge and worker.
 * Each blog is a subfolder. It compares title, date, slug, tags and status of each post with an independent reading of
 * its file.
 */

interface Post {
  readonly blog: string
  readonly path: string
  readonly text: Buffer
  readonly expected: Expected
}

interface Verdict {
  readonly blog: string
  readonly path: string
  readonly outcome: 'right' | 'named' | 'wrong'
  readonly why: string
}

interface ImportError {
  readonly file: string
  readonly message: string
}

const MAX_POSTS = 2000
const MAX_BYTES = 12 * 1024 * 1024

export async function measureImport(stack: Stack): Promise<Measured> {
  const folder = process.argv[3]
  if (folder === undefined) throw new Error('Usage: npm run bench -- import DIR')
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const { token } = await signUp(edge.port)
  await stack.worker(url, { WORKER_QUEUES: 'blog' })
  const verdicts: Verdict[] = []
  let seconds = 0
  for (const batch of splitIntoBatches(readPosts(folder))) {
    await queryRows(url, 'truncate blog_post, blog_tag, blog_post_count cascade')
    const startedAt = performance.now()
    const errors = await postBatch(`http://127.0.0.1:${edge.port}/api/v1/blog`, token, batch)
    seconds += (performance.now() - startedAt) / 1000
    verdicts.push(...judgePost(batch, errors, await readStored(url)))
  }
  return summarize(verdicts, seconds)
}

function readPosts(folder: string): Post[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(md|markdown)$/i.test(entry.name) && !entry.name.startsWith('.'))
    .map((entry) => {
      const [blog = '', ...parts] = relative(folder, join(entry.parentPath, entry.name)).split(sep)
      const text = readFileSync(join(entry.parentPath, entry.name))
      const path = parts.join('/')
      return { blog, path, text, expected: readExpected(path, text.toString()) }
    })
    .sort((a, b) => (a.blog + a.path < b.blog + b.path ? -1 : 1))
}

interface Batch {
  readonly blog: string
  readonly slugs: Set<string>
  readonly posts: Post[]
  bytes: number
}

/** Splits posts into batches. The posts of a batch belong to one blog and have different slugs. */
function splitIntoBatches(posts: readonly Post[]): Post[][] {
  const batches: Batch[] = []
  for (const post of posts) {
    const { slug } = post.expected
    const fitting = batches.find(
      ({ blog, slugs, bytes, posts }) =>
        blog === post.blog && !slugs.has(slug) && bytes < MAX_BYTES && posts.length < MAX_POSTS,
    )
    const batch: Batch = fitting ?? { blog: post.blog, slugs: new Set(), bytes: 0, posts: [] }
    if (fitting === undefined) batches.push(batch)
    batch.slugs.add(slug)
    batch.bytes += post.text.length
    batch.posts.push(post)
  }
  return batches.map(({ posts }) => posts)
}

async function postBatch(
  base: string,
  token: string,
  batch: readonly Post[],
): Promise<readonly ImportError[]> {
  const zip = createZip(batch.map(({ path, text }) => [path, text] as const))
  const form = new FormData()
  form.set('file', new File([zip as Uint8Array<ArrayBuffer>], 'posts.zip'))
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${base}/import`, { method: 'POST', body: form, headers })
  const result = (await response.json()) as { errors: ImportError[] }
  if (response.status !== 200) throw new Error(`import: ${response.status} ${JSON.stringify(result)}`)
  return result.errors
}

async function readStored(url: string): Promise<ReadonlyMap<string, Found>> {
  const rows = await queryRows(
    url,
    `select slug, title, content, status, iso(coalesce(published_at, created_at)) as date, created_at > now() - interval '1 hour' as is_new,
       array(select t.slug from blog_post_tag pt join blog_tag t on t.id = pt.tag_id where pt.post_id = p.id order by 1)::text[] as tags
     from blog_post p`,
  )
  return new Map((rows as unknown as Found[]).map((row) => [row.slug, row]))
}

function judgePost(
  batch: readonly Post[],
  errors: readonly ImportError[],
  stored: ReadonlyMap<string, Found>,
): Verdict[] {
  const byTitle = new Map([...stored.values()].map((found) => [found.title, found]))
  return batch.map(({ blog, path, expected }) => {
    const error = errors.find(({ file }) => file === path)
    if (error !== undefined) return { blog, path, outcome: 'named', why: error.message }
    const found = expected.slug === '' ? byTitle.get(expected.title) : stored.get(expected.slug)
    const why = describeMistakes(expected, found)
    return { blog, path, outcome: why === '' ? 'right' : 'wrong', why }
  })
}

function summarize(verdicts: readonly Verdict[], seconds: number): Measured {
  const of = (outcome: Verdict['outcome'], blog?: string): number =>
    verdicts.filter((one) => one.outcome === outcome && (blog === undefined || one.blog === blog)).length
  const blogs = [...new Set(verdicts.map(({ blog }) => blog))]
  const share = of('right') / verdicts.length
  return {
    rounds: 1,
    findings: [
      {
        name: 'correct posts',
        unit: '%',
        values: [100 * share],
        target: { of: 'value', atLeast: 99.9 },
      },
      {
        name: 'incorrect posts without an error',
        unit: 'posts',
        values: [of('wrong')],
        target: { of: 'value', atMost: verdicts.length / 1000 },
      },
      { name: 'posts', unit: 'posts/s', values: [verdicts.length / seconds] },
    ],
    notes: [
      ...blogs.map(
        (blog) =>
          `${blog}: ${of('right', blog)} correct, ${of('named', blog)} reported as errors, ${of('wrong', blog)} incorrect`,
      ),
      ...verdicts
        .filter(({ outcome }) => outcome !== 'right')
        .slice(0, 40)
        .map(({ blog, path, outcome, why }) => `${outcome}: ${blog}/${path}: ${why}`),
    ],
    details: verdicts.filter(({ outcome }) => outcome !== 'right'),
  }
}
