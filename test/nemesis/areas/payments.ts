import { buildIntent, createEvent, signEvent, type TestEvent } from '../../payment-events.ts'
import { buildLifecycleEvents, LIFECYCLES } from '../../payment-lifecycles.ts'
import type { MakeArea } from '../area.ts'
import { countWords, findMissingOrDuplicate } from '../area.ts'
import type { Caller } from '../caller.ts'
import { follow } from '../follow.ts'

/** Delivers provider events in random order, some of them twice, and makes checkouts and refunds. */
export const payments: MakeArea = (admin, user) => {
  const events: string[] = []
  const refunds: string[] = []
  const sessions: string[] = []
  const lives: { readonly life: string; readonly name: string }[] = []
  let names = 0

  const postEvent = async (caller: Caller, one: TestEvent): Promise<void> => {
    const headers = { 'stripe-signature': signEvent(JSON.stringify(one)) }
    await caller.withToken('').ask('/api/v1/payment/webhook', { method: 'POST', json: one, headers })
    events.push(one.id)
  }

  const live = async (): Promise<void> => {
    const life = admin.chance.pick(LIFECYCLES)
    const name = `n${++names}x`
    const shuffled = buildLifecycleEvents(life, name)
      .map((one) => ({ one, at: admin.chance.next() }))
      .sort((a, b) => a.at - b.at)
    for (const { one } of shuffled) {
      await postEvent(admin, one)
      if (admin.chance.isHit(0.1)) await postEvent(admin, one)
    }
    lives.push({ life, name })
  }

  const buy = async (): Promise<void> => {
    const { stripe } = admin.world
    const { json } = await user.post('/api/v1/payment/checkout', {
      json: { price_id: 'price_1', mode: 'payment' },
    })
    // A stopping edge answers with the id of the job instead of its result.
    const { session_id } = json.job_id === undefined ? json : (await follow(user, json.job_id)).result
    sessions.push(session_id)
    const customer = String(stripe.account.sessions.find(({ id }) => id === session_id)?.customer)
    const name = `b${++names}x`
    const charge = { id: `ch_${name}`, payment_intent: `pi_${name}`, amount: 1000, currency: 'usd' }
    stripe.account.charges.set(charge.id, charge)
    await postEvent(
      user,
      createEvent('payment_intent.succeeded', buildIntent({ name, amount: 1000, customer })),
    )
    const listed = await user.ask('/api/v1/payment/transactions?page_size=200')
    const rows = listed.json.transactions ?? listed.json.items ?? listed.json
    const row = rows.find(
      (one: { provider_transaction_id: string }) => one.provider_transaction_id === `pi_${name}`,
    )
    // The webhook waits for an event's job for at most 2 s, so the payment may not exist yet.
    if (row === undefined) return
    for (let n = user.chance.between(0, 2); n > 0; n--) {
      const path = `/api/v1/payment/refund/${row.id}?background=true`
      const asked = await user.post(path, { json: { amount: 300 } })
      refunds.push(asked.json.job_id)
      await follow(user, asked.json.job_id)
    }
  }

  return {
    act: () => (admin.chance.isHit(0.5) ? live() : buy()),
    judge: async () => {
      const { stripe, query } = admin.world
      const applied = await query('select id from payment_event where applied_at is not null')
      const found = findMissingOrDuplicate(
        'applied event',
        [...new Set(events)],
        applied.map(({ id }) => String(id)),
      )
      const asked = stripe.account.refunds.map(
        ({ metadata }) => (metadata as Record<string, string>).millrace_job ?? '',
      )
      found.push(...findMissingOrDuplicate('refund at the provider for job', refunds, asked))
      if (asked.length !== refunds.length)
        found.push(`${asked.length} refunds at the provider, expected ${refunds.length}`)
      const known = new Set(stripe.account.sessions.map(({ id }) => id))
      found.push(
        ...sessions.filter((id) => !known.has(id)).map((id) => `session ${id} is unknown to the provider`),
      )
      if (new Set(sessions).size !== sessions.length) found.push('two checkouts share a session')
      if (stripe.account.sessions.length > sessions.length * 2)
        found.push(`${stripe.account.sessions.length} sessions were created for ${sessions.length} checkouts`)
      const customers = countWords(stripe.account.customers.map(({ metadata }) => JSON.stringify(metadata)))
      for (const [who, count] of customers) if (count > 1) found.push(`${who} has ${count} customers`)
      return [...found, ...(await findDifferingOutcomes())]
    },
  }

  /** Returns the payment histories whose outcome differs from that of most histories of the same kind. */
  async function findDifferingOutcomes(): Promise<string[]> {
    const rows = await admin.world.query(
      `select coalesce(c.facts, t.facts)::text as said, t.type, t.status, t.amount::int, t.refunded::int, t.reserved::int, t.shown
       from payment_transaction t left join payment_transaction c on c.id = t.charge_id
       order by t.type, t.amount, t.status`,
    )
    const ends = lives.map(({ life, name }) => {
      const own = rows.filter(({ said }) => new RegExp(`_${name}\\b|_${name}_`).test(String(said)))
      return { life, name, end: JSON.stringify(own.map(({ said: _, ...rest }) => rest)) }
    })
    return [...Map.groupBy(ends, ({ life }) => life).values()].flatMap((alike) => {
      const [[max] = ['']] = [...countWords(alike.map(({ end }) => end))].sort((a, b) => b[1] - a[1])
      return alike
        .filter(({ end }) => end !== max)
        .map(({ life, name, end }) => `${life} ${name} ended as ${end}, others as ${max}`)
    })
  }
}
