import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import {
  insertAccount,
  insertSession,
  readAccountState,
  refreshSession,
  revokeSession,
} from '../../sql/accounts/accounts.ts'
import { deleteExpiredRefreshTokens } from '../../sql/accounts/sessions.ts'
import type { Queries } from '../../sql/db.ts'
import { deriveSuccessorToken, digestOf } from '../../tasks/accounts/tokens.ts'
import type { TestDatabase } from '../database.ts'
import { TEST_KEYS } from '../keys.ts'

/** Clients and thieves exchange refresh tokens at random, and the invariants hold in every committed state. */

const pick = fc.nat({ max: 1000 })

/**
 * Step of a client, which makes one exchange at a time. It retries with the same Idempotency-Key until an answer
 * arrives. Answers get lost, servers die before the commit, and the network may deliver a request twice in parallel.
 */
export const clientStep = fc.oneof(
  { weight: 8, arbitrary: fc.constant('refresh' as const) },
  { weight: 4, arbitrary: fc.constant('answer lost' as const) },
  { weight: 3, arbitrary: fc.constant('crash' as const) },
  { weight: 3, arbitrary: fc.constant('doubled' as const) },
  { weight: 2, arbitrary: fc.constant('doubled, answers lost' as const) },
  { weight: 1, arbitrary: fc.constant('sign out' as const) },
)
export type ClientStep = typeof clientStep extends fc.Arbitrary<infer T> ? T : never

/**
 * Step of a thief, who copies a client's current or old token and uses it. A thief may also repeat a whole request with
 * its key.
 */
export const thiefStep = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('steal' as const), pick, old: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('use' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('repeat' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('prune' as const) }) },
)
export type ThiefStep = typeof thiefStep extends fc.Arbitrary<infer T> ? T : never

/** Use of a token by a client or a thief. */
interface TokenUse {
  readonly token: string
  readonly successor: string
  readonly begun: number
  ended: number
  outcome: 'exchanged' | 'replay' | 'refused' | 'undone'
}

interface Family {
  readonly id: string
  readonly tokens: string[]
  readonly presentations: TokenUse[]
  /** True if a thief has used a token of the family. */
  isStolen: boolean
  isSignedOut: boolean
}

export interface Client {
  family: Family
  token: string
  /** Successor in the exchange that is still unanswered; null if every exchange is answered. */
  pending: string | null
}

export async function createRefreshModel({ db, query }: TestDatabase) {
  const account = await db.one(
    insertAccount({
      email: `${randomUUID()}@example.com`,
      passwordHash: 'x',
      fullName: null,
      role: 'user',
      isActive: true,
    }),
  )
  const families: Family[] = []
  const loot: { family: Family; token: string }[] = []
  let clock = 0

  const signIn = async (): Promise<Client> => {
    const [id, token] = [randomUUID(), `first ${randomUUID()}`]
    await db.run(
      insertSession(id, account.id, digestOf(token), 3600, {
        address: null,
        place: null,
        userAgent: null,
        device: null,
      }),
    )
    const family = { id, tokens: [token], presentations: [], isStolen: false, isSignedOut: false }
    families.push(family)
    return { family, token, pending: null }
  }

  const exchange = async (on: Queries, one: TokenUse): Promise<void> => {
    const row = await on.maybeOne(refreshSession(digestOf(one.token), digestOf(one.successor), 3600))
    one.outcome = row === null ? 'refused' : row.replayed ? 'replay' : 'exchanged'
  }

  const presentToken = async (
    family: Family,
    token: string,
    successor: string,
    undone = false,
  ): Promise<boolean> => {
    const one: TokenUse = { token, successor, begun: ++clock, ended: 0, outcome: 'undone' }
    family.presentations.push(one)
    if (undone) {
      const crash = new Error('The server died')
      const dying = db.transaction(async (tx) => {
        await exchange(tx, one)
        throw crash
      })
      await assert.rejects(dying, (error) => error === crash)
      one.outcome = 'undone'
    } else await exchange(db, one)
    one.ended = ++clock
    if (one.outcome === 'exchanged' && !family.tokens.includes(successor)) family.tokens.push(successor)
    return one.outcome === 'exchanged'
  }

  /** Runs a step. A client whose session has ended for a legitimate reason signs in again. */
  const run = async (client: Client, step: ClientStep): Promise<void> => {
    const { family } = client
    if (step === 'sign out') {
      family.isSignedOut = true
      await db.any(revokeSession(digestOf(client.token), null))
      Object.assign(client, await signIn())
      return
    }
    client.pending ??= randomUUID()
    const successor = deriveSuccessorToken(TEST_KEYS, client.token, client.pending)
    const send = (): Promise<boolean> => presentToken(family, client.token, successor, step === 'crash')
    const answers = await Promise.all(step.startsWith('doubled') ? [send(), send()] : [send()])
    if (step === 'crash') return
    if (answers.every(Boolean)) {
      if (step.endsWith('lost')) return
      client.token = successor
      client.pending = null
      return
    }
    assert.ok(family.isStolen, 'no honest client is signed out')
    Object.assign(client, await signIn())
  }

  const steal = async (clients: readonly Client[], step: ThiefStep): Promise<void> => {
    if (step.kind === 'prune') {
      await db.one(deleteExpiredRefreshTokens(10))
    } else if (step.kind === 'steal') {
      const { family, token } = clients[step.pick % clients.length]!
      const old = family.tokens[step.pick % family.tokens.length]!
      loot.push({ family, token: step.old ? old : token })
    } else if (step.kind === 'repeat') {
      const { family } = clients[step.pick % clients.length]!
      const one = family.presentations[step.pick % (family.presentations.length || 1)]
      if (one === undefined) return
      family.isStolen = true
      await presentToken(family, one.token, one.successor)
    } else if (loot.length > 0) {
      const [{ family, token }] = loot.splice(step.pick % loot.length, 1) as [(typeof loot)[0]]
      family.isStolen = true
      const successor = `stolen ${randomUUID()}`
      if (await presentToken(family, token, successor)) loot.push({ family, token: successor })
    }
  }

  /** Asserts the invariants of every committed state, and that ended families do not change. */
  const endedWith = new Map<string, number>()
  const checkState = async (): Promise<void> => {
    const rows = (await query(
      `select s.id, s.ended_at is not null as ended, s.revoked_at is not null as revoked, count(t)::int as tokens,
        count(*) filter (where t.rotated_at is null)::int as current
      from session s join refresh_token t on t.session_id = s.id group by s.id`,
    )) as { id: string; ended: boolean; revoked: boolean; tokens: number; current: number }[]
    for (const { id, ended, revoked, tokens, current } of rows) {
      assert.ok(current <= 1, 'at most one token of a family is current')
      assert.ok(revoked || !ended)
      const before = endedWith.get(id)
      if (before !== undefined)
        assert.deepEqual([revoked, tokens], [true, before], 'an ended family stays unchanged')
      if (revoked) endedWith.set(id, tokens)
    }
  }
  const watch = async (until: Promise<unknown>): Promise<void> => {
    let over = false
    void until.finally(() => {
      over = true
    })
    while (!over) await checkState()
  }

  const readEnded = async (): Promise<ReadonlySet<string>> => {
    const [row] = await query(readAccountState.text, [account.id])
    const { ended } = JSON.parse(Object.values(row!)[0] as string) as { ended: string[] }
    return new Set(ended)
  }

  const checkFamily = async (family: Family, ended: boolean): Promise<void> => {
    const done = family.presentations.filter(({ outcome }) => outcome !== 'undone')
    const exchanged = done.filter(({ outcome }) => outcome === 'exchanged')
    for (const token of family.tokens) {
      const successors = exchanged.filter((one) => one.token === token).map(({ successor }) => successor)
      assert.ok(new Set(successors).size <= 1, 'no token has two successors')
    }
    const replays = (usedBefore: (one: TokenUse, use: TokenUse) => boolean): boolean =>
      done.some(
        (one) =>
          // First kind of replay: the same token is exchanged with two different keys, in either order.
          exchanged.some((other) => other.token === one.token && other.successor !== one.successor) ||
          // Second kind of replay: a token is used after its successor.
          exchanged.some((use) => use.token === one.successor && usedBefore(one, use)),
      )
    if (replays((one, use) => use.ended < one.begun)) assert.ok(ended, 'a replay ends the family')
    if (ended)
      assert.ok(
        replays((one, use) => use.begun < one.ended),
        'only a replay ends a family',
      )
    if (!family.isStolen) assert.equal(ended, false)
  }

  /**
   * Checks the final state: honest clients are still signed in, and then the replay of an old token ends each family.
   */
  const check = async (clients: readonly Client[]): Promise<void> => {
    await checkState()
    const ended = await readEnded()
    for (const family of families) await checkFamily(family, ended.has(family.id))
    for (const client of clients) if (!client.family.isStolen) await run(client, 'refresh')
    for (const family of families) {
      const current = family.tokens.at(-1)!
      for (const token of family.tokens.slice(0, -1))
        await presentToken(family, token, `late ${randomUUID()}`)
      const replayed = family.tokens.length > 1
      assert.equal((await readEnded()).has(family.id), replayed || ended.has(family.id))
      if (replayed) assert.equal(await presentToken(family, current, `late ${randomUUID()}`), false)
    }
    await checkState()
  }

  return { signIn, run, steal, watch, check }
}
