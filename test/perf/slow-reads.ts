import { connect } from '../../sql/connections/driver.ts'
import { formatRequest, ORDER_DEFAULTS, startGenerator } from './load/load.ts'
import type { Measured } from './report.ts'
import { type Stack, signUp, storeDocuments } from './stack.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7)
// More lists than the edge has connections.
const LISTS = 32
// Gives a third of an edge's maximum rate, so that p99 reflects reads and not a queue.
const PACE_MS = 3
const CONNECTIONS = 16

/**
 * `npm run bench -- slow-reads` measures p99 of reads by id while callers keep requesting lists that wait for a locked
 * table.
 */
export async function measureSlowReads(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const account = await signUp(edge.port)
  const [id] = await storeDocuments(url, account.id, 1000)
  const generator = await startGenerator()
  const measure = async (): Promise<number> => {
    const head = formatRequest('GET', `/api/v1/documents/${id}`, account.token)
    const order = { ...ORDER_DEFAULTS, port: edge.port, head, connections: CONNECTIONS, pauseMs: PACE_MS }
    return (await generator.run(order)).p99
  }
  const idle: number[] = []
  const held: number[] = []
  let refused = 0
  for (let round = 0; round < ROUNDS; round++) {
    idle.push(await measure())
    const holding = await startBlockedLists(url, edge.port, account.token)
    held.push(await measure())
    refused += await holding.end()
  }
  await generator.stop()
  return {
    rounds: ROUNDS,
    findings: [
      {
        name: 'a read by id, p99, while lists wait',
        unit: 'ms',
        values: held,
        reference: { name: 'without lists', values: idle },
        target: { of: 'ratio', atMost: 2 },
      },
    ],
    notes: [`${LISTS} callers requested lists at a time; ${refused} of the requests timed out.`],
  }
}

/**
 * Locks a table that a list reads, and keeps requesting the list. `end` stops this and returns the number of 503
 * answers.
 */
async function startBlockedLists(
  url: string,
  port: number,
  token: string,
): Promise<{ end(): Promise<number> }> {
  const holder = await connect({ url, applicationName: 'bench-holder' })
  await holder.query('begin')
  await holder.query('lock table blog_tag in access exclusive mode')
  let ended = false
  let refused = 0
  const callers = Array.from({ length: LISTS }, async () => {
    while (!ended) {
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/blog/tags`, {
        headers: { authorization: `Bearer ${token}`, connection: 'close' },
      })
      await answer.arrayBuffer()
      if (answer.status === 503) refused++
    }
  })
  return {
    end: async () => {
      ended = true
      await holder.query('rollback')
      await holder.end()
      await Promise.all(callers)
      return refused
    },
  }
}
