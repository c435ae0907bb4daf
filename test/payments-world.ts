import assert from 'node:assert/strict'
import { applyEvent } from '../tasks/payments/event.task.ts'
import { enqueue } from '../tasks/task.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { type Answered, type Api, type EdgeOptions, startEdge } from './edge/harness.ts'
import { createPeopleMaker, type Person } from './edge/orgs-help.ts'
import { startOwnWorker } from './edge/own-worker.ts'
import { createJobSettings } from './job-settings.ts'
import { buildIntent, createEvent, signEvent, type TestEvent, WEBHOOK_SECRET } from './payment-events.ts'
import { shareByFiles } from './services.ts'
import { KEY, type StripeStandIn, startStripe } from './stripe.ts'
import { until } from './until.ts'

/** A payment provider, an edge and a worker, with helpers for payment tests. */
export interface PaymentsWorld extends TestDatabase {
  readonly api: Api
  readonly stripe: StripeStandIn
  /** Settings for further edges and workers. */
  readonly env: Readonly<Record<string, string>>
  /** Calls a path below /payment, without credentials if `who` is null. */
  call(
    who: Person | null,
    method: string,
    path: string,
    json?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answered>
  people(count: number, role?: string): Promise<Person[]>
  /** Posts a signed event to the webhook, as the provider does. `header` replaces the signature. */
  postEvent(event: TestEvent, header?: string): Promise<Answered>
  /**
   * Posts an event like `postEvent`. With a worker, waits until the event is applied, because the webhook itself waits
   * for 2 s at most.
   */
  send(event: TestEvent, header?: string): Promise<Answered>
  /** Makes `who` the owner of the provider's customer `cus_NAME`. */
  link(who: Person, name: string): Promise<void>
  /** Creates a successful payment, both in the database and at the provider, and returns its transaction's id. */
  createPayment(name: string, amount?: number, more?: object): Promise<number>
  /** Limits the tries of the next refunds of a payment, which the service would retry for hours. */
  limitRefundTries(id: number, tries: number): Promise<void>
  /** Returns a transaction from the public API. */
  transaction(who: Person | null, id: number): Promise<Record<string, unknown>>
}

export interface PaymentsWorldOptions extends EdgeOptions {
  /** False to start no worker, so that jobs stay queued; default true. */
  readonly worker?: boolean
}

/** Starts the provider, edge and worker, which stop after the test file. Call it at the top of the file. */
export async function startPaymentsWorld(options: PaymentsWorldOptions = {}): Promise<PaymentsWorld> {
  const database = await createTestDatabase()
  const stripe = await startStripe()
  const env = {
    PROVIDER_SECRET_KEY: KEY,
    PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET,
    PROVIDER_API_BASE_URL: stripe.url,
    PUBLIC_BASE_URL: 'https://mill.example.com',
    WORKER_THREADS: '1',
    ...options.env,
  }
  const api = await startEdge(database.url, { ...options, env })
  if (options.worker !== false) {
    await startOwnWorker(database.url, 'payments', env)
    // The first job on a thread waits until modules are loaded, which takes longer than the webhook waits for an event.
    await warmUpWorker(database, { event_id: 'evt_of_nothing', subject: 'nothing' })
  }
  const people = createPeopleMaker(api, database.query)

  const call: PaymentsWorld['call'] = (who, method, path, json, headers = {}) =>
    api.call(method, `/api/v1/payment${path}`, {
      headers,
      ...(who === null ? {} : { token: who.token }),
      ...(json === undefined ? {} : { json }),
    })
  const postEvent: PaymentsWorld['postEvent'] = (given, header) => {
    const body = JSON.stringify(given)
    const headers = { 'content-type': 'application/json', 'stripe-signature': header ?? signEvent(body) }
    return api.post('/api/v1/payment/webhook', { body, headers })
  }
  const open = (id: string) =>
    database.query('select from payment_event where id = $1 and applied_at is null', [id])
  const send: PaymentsWorld['send'] = async (given, header) => {
    const answer = await postEvent(given, header)
    if (options.worker !== false)
      await until(`${given.id} is applied`, async () => (await open(given.id)).length === 0)
    return answer
  }
  const createPayment: PaymentsWorld['createPayment'] = async (name, amount = 2000, more = {}) => {
    const ids = { id: `ch_${name}`, payment_intent: `pi_${name}`, amount, currency: 'usd' }
    stripe.account.charges.set(ids.id, { ...ids, ...more })
    const answer = await send(createEvent('payment_intent.succeeded', buildIntent({ name, amount }, more)))
    assert.equal(answer.status, 200, answer.text)
    const [row] = await database.query(
      'select transaction_id::int from payment_reference where provider_id = $1',
      [ids.payment_intent],
    )
    return row!.transaction_id as number
  }
  const transaction: PaymentsWorld['transaction'] = async (who, id) => {
    const answer = await call(who, 'GET', `/transactions/${id}`)
    assert.equal(answer.status, 200, answer.text)
    return answer.json
  }
  const link: PaymentsWorld['link'] = async (who, name) => {
    await database.query('insert into payment_customer (user_id, provider_customer_id) values ($1, $2)', [
      who.id,
      `cus_${name}`,
    ])
  }
  const limitRefundTries: PaymentsWorld['limitRefundTries'] = async (id, tries) => {
    await database.query(`create function limit_tries_${id}() returns trigger language plpgsql as
      $$ begin new.max_tries := ${tries}; return new; end $$`)
    await database.query(`create trigger limit_tries_${id} before insert on job for each row
      when (new.name = 'payments.refund' and new.payload ->> 'transaction_id' = '${id}')
      execute function limit_tries_${id}()`)
  }
  return {
    ...database,
    api,
    limitRefundTries,
    stripe,
    env,
    call,
    people,
    postEvent: postEvent,
    send,
    link,
    createPayment: createPayment,
    transaction,
  }
}

const startShared = shareByFiles(async () => {
  const world = await startPaymentsWorld()
  const open = await startEdge(world.url, { env: { ...world.env, AUTH_LEVEL: 'none' } })
  const unconfigured = await startEdge(world.url, {
    env: { PROVIDER_SECRET_KEY: '', PROVIDER_WEBHOOK_SECRET: '' },
  })
  return { ...world, open, unconfigured }
})

/**
 * Returns the world that all test files of this process share, with an edge without authentication and one without a
 * provider. It also contains payments of other files, so select rows by name.
 */
export async function getSharedPaymentsWorld() {
  const shared = await startShared()
  // A failed test may have left faults behind.
  shared.stripe.faults.length = 0
  return shared
}

/** Runs a job without effects, so that the worker loads its code. */
async function warmUpWorker(
  { db, query }: TestDatabase,
  payload: { event_id: string; subject: string },
): Promise<void> {
  const { jobId } = await db.transaction((tx) =>
    enqueue(tx, applyEvent, payload, { ownerId: null, settings: createJobSettings(1) }),
  )
  const done = () => query(`select from job where id = $1 and status = 'done'`, [jobId])
  await until('the worker has run a job', async () => (await done()).length === 1, 60_000)
}
