import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { TestDatabase } from '../database.ts'
import {
  type Answered,
  type Api,
  createMultipart,
  type EdgeOptions,
  getSharedEdge,
  startEdge,
  startEdgeAndDatabase,
} from './harness.ts'
import { assertRefused, createPeopleMaker, type Person } from './orgs-help.ts'

/** Creates blogs and editors, with short helpers that call the API. */

export const BLOG_PATH = '/api/v1/blog'

export interface Call {
  readonly query?: Readonly<Record<string, string | number>>
  readonly json?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Returns a helper that calls paths below /blog as an account, or without a credential. */
export function createCaller(api: Api) {
  return (who: { readonly token: string } | null, method: string, path: string, options: Call = {}) => {
    const { query = {}, json, headers } = options
    const text = new URLSearchParams(query as Readonly<Record<string, string>>).toString()
    return api.call(method, `${BLOG_PATH}${path}${text === '' ? '' : `?${text}`}`, {
      ...(who === null ? {} : { token: who.token }),
      ...(json === undefined ? {} : { json }),
      ...(headers === undefined ? {} : { headers }),
    })
  }
}

/** Creates a blog on a new edge and database for this test file. */
export const createBlog = async (options: EdgeOptions = {}) =>
  createBlogOn(await startEdgeAndDatabase(options))

/**
 * Creates a blog on the shared edge or, with options, on another edge of its database. Slugs and tag names are shared
 * with other test files.
 */
export async function createSharedBlog(options?: EdgeOptions) {
  const shared = await getSharedEdge()
  return createBlogOn(
    options === undefined ? shared : { ...shared, api: await startEdge(shared.url, options) },
  )
}

async function createBlogOn<Base extends { readonly api: Api } & TestDatabase>(base: Base) {
  const { api, query } = base
  const people = createPeopleMaker(api, query)
  const call = createCaller(api)
  const [editor] = (await people(1, 'moderator')) as [Person]

  /** Creates a post and returns the answer's JSON. */
  const write = async (fields: object = {}): Promise<Answered['json']> => {
    const answer = await call(editor, 'POST', '/posts', {
      json: { title: `Post ${randomBytes(6).toString('hex')}`, ...fields },
    })
    assert.equal(answer.status, 201, answer.text)
    return answer.json
  }
  const publish = async (fields: object = {}): Promise<Answered['json']> => {
    const { id } = await write(fields)
    const answer = await call(editor, 'POST', `/posts/${id}/publish`)
    assert.equal(answer.status, 200, answer.text)
    return answer.json
  }
  const tag = async (name: string, slug?: string): Promise<Answered['json']> => {
    const answer = await call(editor, 'POST', '/tags', { json: { name, slug } })
    assert.equal(answer.status, 201, answer.text)
    return answer.json
  }
  return { ...base, people, call, editor, write, publish, tag }
}

/** Uploads a file to the import. */
export function importFile(
  api: Api,
  who: { readonly token: string } | null,
  name: string,
  bytes: string | Uint8Array,
  options: { readonly query?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Answered> {
  const { body, type } = createMultipart(bytes, { name })
  return api.post(`${BLOG_PATH}/import${options.query ?? ''}`, {
    ...(who === null ? {} : { token: who.token }),
    body,
    headers: { 'content-type': type, ...options.headers },
  })
}

/** Asserts that the stored counts of lists equal the actual numbers of rows. */
export async function assertCounted(
  query: (text: string) => Promise<Record<string, unknown>[]>,
): Promise<void> {
  const [row] = await query(`
    select (select coalesce(json_object_agg(status, n order by status), '{}') from (
        select status, count(*) as n from blog_post group by 1) posts) as posts,
      (select coalesce(json_object_agg(status, n order by status), '{}') from (
        select status, sum(posts) as n from blog_post_count group by 1 having sum(posts) <> 0) counts) as counts`)
  assert.deepEqual(row!.counts, row!.posts)
}

/** Asserts a 422 for exactly one field. */
export function assertField(answer: Answered, ...loc: readonly unknown[]): void {
  assertRefused(answer, 422)
  const places = new Set(answer.json.errors.map((error: { loc: unknown }) => JSON.stringify(error.loc)))
  assert.deepEqual([...places], [JSON.stringify(['body', ...loc])], answer.text)
}
