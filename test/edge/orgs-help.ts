import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import type http from 'node:http'
import type { TestDatabase } from '../database.ts'
import {
  type Answered,
  type Api,
  createEmail,
  type EdgeOptions,
  getSharedEdge,
  startEdge,
  startEdgeAndDatabase,
} from './harness.ts'

/** Creates people and their organizations without the cost of password hashing. */

export interface Person {
  readonly id: number
  readonly email: string
  readonly token: string
}

export interface Call {
  readonly query?: Readonly<Record<string, string | number>>
  readonly json?: unknown
  readonly headers?: http.OutgoingHttpHeaders
}

export type Roles = Readonly<Record<number, string>>

/** Creates a helper for organizations on a new edge and database of this test file. */
export const createOrgs = async (options: EdgeOptions = {}) =>
  createOrgsOn(await startEdgeAndDatabase(options))

/** Returns a helper for organizations on the shared edge, and its admin, who belongs to none of them. */
export async function createSharedOrgs() {
  const shared = await getSharedEdge()
  return { ...createOrgsOn(shared), root: shared.admin as Person }
}

/** Returns a helper for organizations on an edge with other settings and the shared database. */
export async function createOrgsOnShared(options: EdgeOptions) {
  const { url, db, query } = await getSharedEdge()
  return createOrgsOn({ api: await startEdge(url, options), url, db, query })
}

export const createSlug = (name = 'acme'): string => `${name}-${randomBytes(6).toString('hex')}`

export function createOrgsOn(base: { readonly api: Api } & TestDatabase) {
  const { api, query } = base
  const people = createPeopleMaker(api, query)

  /** Calls a path below /orgs as an account; null sends no credential. */
  const call = (who: Person | null, method: string, path: string, { query, json, headers }: Call = {}) =>
    api.call(
      method,
      `/api/v1/orgs${path}${query === undefined ? '' : `?${new URLSearchParams(stringifyValues(query))}`}`,
      {
        ...(who === null ? {} : { token: who.token }),
        ...(json === undefined ? {} : { json }),
        ...(headers === undefined ? {} : { headers }),
      },
    )

  const create = async (who: Person | null, fields: object = {}): Promise<number> => {
    const json = { name: 'Acme', slug: createSlug(), ...fields }
    const answer = await call(who, 'POST', '', { json })
    assert.equal(answer.status, 201, answer.text)
    return answer.json.id
  }

  /** Creates an organization with an account of each role, and an outsider. */
  const org = async () => {
    const [owner, admin, member, outsider] = await people(4)
    const id = await create(owner!)
    await query(
      `insert into organization_member (organization_id, user_id, role) values ($1, $2, 'admin'), ($1, $3, 'member')`,
      [id, admin!.id, member!.id],
    )
    return { id, owner: owner!, admin: admin!, member: member!, outsider: outsider! }
  }

  /** Returns the role of each member, keyed by account id. */
  const roles = async (id: number): Promise<Roles> =>
    Object.fromEntries(
      (await query('select user_id, role from organization_member where organization_id = $1', [id])).map(
        (row) => [row.user_id, row.role],
      ),
    )

  /** Returns the audit events of an organization, oldest first. */
  const trail = (id: number) =>
    query('select kind, actor_id, account_id, data from audit_event where organization_id = $1 order by id', [
      id,
    ])

  /** Returns the last audit event of an organization. */
  const last = async (id: number) => (await trail(id)).at(-1)

  return { ...base, people, call, create, org, roles, trail, last }
}

const stringifyValues = (given: Readonly<Record<string, string | number>>): Record<string, string> =>
  Object.fromEntries(Object.entries(given).map(([key, value]) => [key, String(value)]))

/** Returns a function that inserts signed-in accounts into the database. */
export function createPeopleMaker(
  api: Api,
  query: (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>,
) {
  return async (n: number, role = 'user'): Promise<Person[]> => {
    const emails = Array.from({ length: n }, () => createEmail('person'))
    const rows = await query(
      `insert into account (email, password_hash, full_name, role) select given, 'x', 'N ' || given, $2 from unnest($1::text[]) given returning id, email`,
      [emails, role],
    )
    const sessions = await query(
      'insert into session (id, account_id) select gen_random_uuid(), given from unnest($1::int[]) given returning id',
      [rows.map(({ id }) => id)],
    )
    return Promise.all(
      rows.map((row, i) =>
        signInAs(api, row.id as number, row.email as string, role, sessions[i]!.id as string),
      ),
    )
  }
}

/** Signs an account in. The session has a row only if its id is given. */
export async function signInAs(
  api: Api,
  id: number,
  email: string,
  role = 'user',
  session: string = randomUUID(),
): Promise<Person> {
  return { id, email, token: await api.serving.edge.authenticator.sign({ id, role }, session) }
}

/** Asserts the status and body of a refusal. */
export function assertRefused(answer: Answered, status: number, detail?: string | RegExp): void {
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(
    Object.keys(answer.json),
    status === 422 ? ['detail', 'errors', 'code'] : ['detail', 'code'],
  )
  if (detail instanceof RegExp) assert.match(answer.json.detail, detail)
  else if (detail !== undefined) assert.equal(answer.json.detail, detail)
}

export const ORG_MISSING = 'Organization not found'
export const NOT_MEMBER = 'Only members of the organization may do this'
export const RANK_TOO_LOW = 'This requires the role admin or owner in the organization'
export const OWNERS_ONLY = 'This requires the role owner in the organization'
export const RANK_EXCEEDED = 'You cannot grant a role above your own, or change a member who ranks above you'
export const LAST_OWNER =
  'An organization must have an owner; transfer ownership first, or delete the organization'
export const ROLE_INVALID = 'The role must be owner, admin or member'
