import {
  addJobCallbacks,
  claimDeliveries,
  recordDeliveryAttempt,
  type WebhookRates,
} from '../../sql/webhooks/webhooks.ts'
import { createTestDatabase } from '../database.ts'
import { createLedger } from '../edge/ledger.ts'
import { SEALED_TEXT, sealWebhookSecret } from '../keys.ts'

/** Adds endpoints, deliveries and jobs of an account. `fresh` starts over with a new account and no endpoints. */

export const RETRY_DELAYS_MS = [100_000, 200_000, 300_000]
export const ANSWER = { at: '2026-01-01T00:00:00.000Z', ms: 1, status: 500, body: '', error: null }
const NO_RATE_LIMITS = { verified: null, unverified: null }

interface DeliveryRow {
  readonly id: number
  readonly endpoint_id: number
  readonly type: string
  readonly url: string | null
  readonly body: string
  readonly status: string
  readonly attempts: number
  readonly due_at: Date | null
  readonly answers: object[]
}

export async function createWebhookDatabase() {
  const database = await createTestDatabase()
  const { db, query } = database
  const ledger = createLedger(database)
  ledger.isQuiet = true
  let count = 0
  const of = { owner: 0 }
  const insert = async (what: string, values: readonly unknown[]): Promise<number> =>
    Number((await query(`insert into ${what} returning id`, values))[0]!.id)
  const account = () => insert(`account (email, password_hash) values ($1, 'x')`, [`a${++count}@example.com`])
  return {
    ...database,
    ledger,
    insert,
    account,
    get owner() {
      return of.owner
    },
    fresh: async (): Promise<void> => {
      await query('truncate webhook_endpoint, webhook_pending_sum cascade')
      of.owner = await account()
    },
    endpoint: (
      events: readonly string[],
      accountId: number | null = of.owner,
      organizationId: number | null = null,
    ) =>
      insert(
        `webhook_endpoint (secret, account_id, organization_id, url, host, events)
         values ($4, $1, $2, 'https://example.com/', 'example.com', $3)`,
        [accountId, organizationId, events, sealWebhookSecret(accountId)],
      ),
    delivery: (endpointId: number) =>
      insert(`webhook_delivery (endpoint_id, type, body) values ($1, 't', '{}')`, [endpointId]),
    deliveries: async (endpointId?: number): Promise<DeliveryRow[]> =>
      (await query(
        `select id::int, endpoint_id::int, type, url, body, status, attempts, due_at, answers from webhook_delivery
         where $1::bigint is null or endpoint_id = $1 order by id`,
        [endpointId ?? null],
      )) as never,
    callback: (job: string, url: string, keyId: string | null = null) =>
      addJobCallbacks([job], {
        accountId: of.owner,
        url,
        host: new URL(url).hostname,
        keyId,
        secret: SEALED_TEXT,
      }),
    ended: async (outcome = 'done', more: object = {}): Promise<string> => {
      const id = await ledger.add(of.owner)
      await ledger.claim(id)
      await ledger.finish(id, outcome, more as never)
      return id
    },
    settle: async (id: number, outcome: 'delivered' | 'failed' | 'gone' = 'failed') =>
      (await db.one(recordDeliveryAttempt(id, outcome, ANSWER, RETRY_DELAYS_MS))).end,
    take: (id: number, max = 10, rates: WebhookRates = NO_RATE_LIMITS) =>
      db.any(claimDeliveries(id, 'example.com', { max, holdSeconds: 45, rates })),
  }
}
