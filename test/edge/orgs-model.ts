import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { TestDatabase } from '../database.ts'
import { runPurge } from '../purge.ts'
import { type Answered, type Api, PASSWORD } from './harness.ts'
import { createPeopleMaker, type Person, signInAs } from './orgs-help.ts'
import { createObserver, type TrailEvent } from './orgs-observer.ts'

/** Simulates accounts that change organizations at random and concurrently, and checks invariants. */

const arbitraryIndex = fc.nat({ max: 1000 })
const arbitraryRole = fc.constantFrom('owner', 'admin', 'member')
const KINDS = [
  ['add', 6],
  ['bulk', 2],
  ['role', 10],
  ['remove', 4],
  ['leave', 4],
  ['transfer', 4],
  ['invite', 6],
  ['revoke', 3],
  ['resend', 2],
  ['accept', 3],
  ['update', 2],
  ['create', 1],
  ['delete', 1],
  ['register', 1],
  ['deleteAccount', 1],
] as const
type Kind = (typeof KINDS)[number][0]

/** A random operation. Its numbers index the accounts and organizations that exist when it runs. */
export const arbitraryOperation = fc.record({
  kind: fc.oneof(...KINDS.map(([kind, weight]) => ({ weight, arbitrary: fc.constant<Kind>(kind) }))),
  actor: arbitraryIndex,
  org: arbitraryIndex,
  target: arbitraryIndex,
  role: arbitraryRole,
})
export type Operation = typeof arbitraryOperation extends fc.Arbitrary<infer T> ? T : never

interface SentRequest {
  readonly operation: string
  readonly status: number
  readonly requestId: string
}

const GUEST_COUNT = 4
const MIN_ACCOUNTS = 5
const CHECK_INTERVAL = 6
let worlds = 0

export async function createModel({ db, query }: TestDatabase, apis: readonly Api[]) {
  const world = ++worlds
  const newPeople = createPeopleMaker(apis[0]!, query)
  const [[root], people] = [await newPeople(1, 'admin'), await newPeople(8)]
  const emails = new Map(people.map(({ id, email }) => [id, email]))
  const orgs: number[] = []
  const invites: { org: number; id: number; token: string }[] = []
  const done: SentRequest[] = []
  let count = 0

  const at = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length]
  const guest = (n: number): string => `guest${n % GUEST_COUNT}.w${world}@example.com`

  const request = async (
    who: Person | null,
    method: string,
    path: string,
    json?: unknown,
  ): Promise<Answered> => {
    const answer = await at(apis, ++count)!.call(method, `/api/v1${path}`, {
      ...(who === null ? {} : { token: who.token }),
      ...(json === undefined ? {} : { json }),
    })
    const operation = `${who?.id} ${method} ${path} ${JSON.stringify(json)}`
    done.push({ operation, status: answer.status, requestId: answer.headers['x-request-id'] as string })
    return answer
  }

  const invite = async (actor: Person, org: number, email: string, role: string): Promise<void> => {
    const { status, json } = await request(actor, 'POST', `/orgs/${org}/invites`, { email, role })
    if (status === 201) invites.push({ org, id: json.id, token: json.token })
  }

  const register = async (email: string): Promise<void> => {
    const { status, json } = await request(null, 'POST', '/auth/register', { email, password: PASSWORD })
    if (status !== 200) return
    emails.set(json.id, email)
    people.push(await signInAs(apis[0]!, json.id, email))
  }

  const create = async (actor: Person): Promise<void> => {
    const { json } = await request(actor, 'POST', '/orgs', { name: 'N', slug: `w${world}-${++count}` })
    if (json.id !== undefined) orgs.push(json.id)
  }

  const deleteOrg = async (actor: Person, org: number): Promise<void> => {
    const { status } = await request(actor, 'DELETE', `/orgs/${org}`)
    if (status === 204)
      setImmediate(() => orgs.splice(orgs.indexOf(org), 1, ...(orgs.length > 1 ? [] : [org])))
  }

  const deleteAccount = async (target: Person): Promise<void> => {
    const { status } = await request(root!, 'DELETE', `/auth/users/${target.id}`)
    // Let a deleted account act for a moment longer, like a client that has not noticed yet.
    if (status === 204) setImmediate(() => people.splice(people.indexOf(target), 1))
  }

  const run = async (op: Operation): Promise<unknown> => {
    const [actor, target, org] = [at(people, op.actor)!, at(people, op.target)!, at(orgs, op.org)!]
    const path = `/orgs/${org}`
    const found = at(invites, op.target)
    switch (op.kind) {
      case 'add':
        return request(actor, 'POST', `${path}/members?user_id=${target.id}&role=${op.role}`)
      case 'bulk': {
        const user_ids = people.filter((_, i) => (op.target >> (i % 10)) & 1).map(({ id }) => id)
        return request(actor, 'POST', `${path}/members/bulk`, { user_ids, role: op.role })
      }
      case 'role':
        return request(actor, 'PATCH', `${path}/members/${target.id}?role=${op.role}`)
      case 'remove':
        return request(actor, 'DELETE', `${path}/members/${target.id}`)
      case 'leave':
        return request(actor, 'DELETE', `${path}/members/me`)
      case 'transfer':
        return request(actor, 'POST', `${path}/transfer-ownership`, { user_id: target.id })
      case 'invite':
        return invite(actor, org, op.target % 3 ? guest(op.target) : target.email, op.role)
      case 'revoke':
        return found && request(actor, 'DELETE', `/orgs/${found.org}/invites/${found.id}`)
      case 'resend':
        return found && request(actor, 'POST', `/orgs/${found.org}/invites/${found.id}/resend`)
      case 'accept':
        return found && request(actor, 'POST', '/auth/accept-invite', { token: found.token })
      case 'update':
        return request(
          actor,
          'PATCH',
          `${path}?${op.target % 2 ? `name=M${op.target}` : `slug=w${world}-s${op.target % 6}`}`,
        )
      case 'create':
        return create(actor)
      case 'delete':
        return deleteOrg(actor, org)
      case 'register':
        return register(guest(op.target))
      case 'deleteAccount':
        return people.length > MIN_ACCOUNTS && deleteAccount(target)
    }
  }

  /** Returns rows that violate an invariant, which must hold after every commit. */
  const violations = () =>
    query(`
      select 'no owner: ' || o.id as what from organization o where o.deleted_at is null and not exists (
        select from organization_member m where m.organization_id = o.id and m.role = 'owner')
      union all
      select 'twice a member: ' || user_id from organization_member group by organization_id, user_id having count(*) > 1
      union all
      select 'two pending: ' || email from organization_invite where status = 'pending' group by organization_id, email having count(*) > 1
      union all
      select 'invited although registered: ' || i.email from organization_invite i join account a on a.email = i.email
        where i.status = 'pending'`)

  /** Runs operations in sequence. Checks the invariants at intervals, while other lanes have requests in flight. */
  const live = async (operations: readonly Operation[]): Promise<void> => {
    for (const [i, one] of operations.entries()) {
      await run(one)
      if (i % CHECK_INTERVAL > 0) continue
      await runPurge(db)
      assert.deepEqual(await violations(), [])
    }
  }

  /**
   * Asserts that every success has a legal audit event, that no refusal has one, and that the rows match the audit
   * trail.
   */
  const check = async (): Promise<{ requests: number; successes: number }> => {
    await runPurge(db)
    assert.deepEqual(await violations(), [])
    const trail = (await query('select * from audit_event order by id')) as unknown as TrailEvent[]
    const noted = new Set(trail.map((event) => event.request_id))
    for (const { operation, status, requestId } of done) {
      assert.ok(status < 500, `${operation}: ${status}`)
      if (status >= 400) assert.ok(!noted.has(requestId), `${operation} was refused`)
      // A request for the current state succeeds without a change, and therefore without an event.
      else if (!/PATCH .*role=|bulk/.test(operation)) assert.ok(noted.has(requestId), `${operation} is noted`)
    }
    const observer = createObserver(emails)
    observer.followAll(trail)
    const rows = async (text: string) => (await query(text)).map((row) => String(row.what)).sort()
    assert.deepEqual(observer.state(), {
      members: await rows(
        `select concat_ws(' ', organization_id, user_id, role) as what from organization_member`,
      ),
      invites: await rows(`select concat_ws(' ', id, status) as what from organization_invite`),
    })
    return { requests: done.length, successes: done.filter(({ status }) => status < 300).length }
  }

  for (const [i, person] of people.slice(0, 3).entries()) {
    await create(person)
    const others = people.filter((_, n) => (n + i) % 3 > 0).map(({ id }) => id)
    for (const [role, user_ids] of [
      ['admin', others.slice(0, 2)],
      ['member', others],
    ] as const)
      await request(person, 'POST', `/orgs/${orgs[i]}/members/bulk`, { user_ids, role })
  }
  return { live, check }
}
