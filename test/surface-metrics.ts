import type { EdgeRequest, ReplyHead, Responder } from '../edge/http/server.ts'
import { createMetrics } from '../edge/metrics/metrics.ts'

/** Metrics of Node and of the process, from prom-client, are not promised: some depend on the system and on Node. */
const OF_PROCESS = /^(nodejs|process)_/
const TALLY = { queue: 'q', name: 't', attempts: 1, run_seconds: 0, wait_seconds: 0, runs: [], waits: [] }

/**
 * Returns the promised metrics, each as `name type label label …`. They are those of an edge with a replica, after
 * requests and jobs.
 */
export async function readMetrics(): Promise<readonly string[]> {
  const texts = [
    [
      { ...TALLY, outcome: 'done' },
      { ...TALLY, outcome: 'retry' },
    ],
    {},
    [{ name: 'w', threads: 1, busy: 0, memory_bytes: 1, running: 0 }],
  ]
  const metrics = createMetrics({
    db: { usage: () => ({ active: 0, idle: 0, waiting: 0 }) },
    reader: {
      text: async ({ name }: { readonly name: string }) =>
        JSON.stringify(
          name.includes('depth') ? [{ queue: 'q', queued: 1, running: 0, waiting: 0 }] : { q: 1 },
        ),
      texts: async () => texts.map((each) => JSON.stringify(each)),
    },
    hub: { watcherCount: 0 },
    streams: { count: 0 },
    replica: { state: 'used', lagSeconds: 0, counts: { replica: 1 } },
  } as unknown as Parameters<typeof createMetrics>[0])
  metrics.recordResponse(null, 'GET', 404, 0)
  metrics.countRefusal('account.missing')
  const request = { method: 'GET', header: () => '' } as unknown as EdgeRequest
  const sent: unknown[] = []
  const responder = { send: (reply: { readonly body: unknown }) => sent.push(reply.body) }
  const rendered = await metrics.render()
  await rendered.send(request, responder as unknown as Responder, () => ({}) as ReplyHead)
  return parseMetrics(String(sent[0]))
}

function parseMetrics(text: string): readonly string[] {
  return [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)]
    .filter(([, name]) => !OF_PROCESS.test(name!))
    .map(([, name, type]) => {
      const samples = text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.+)\\}`, 'gm'))
      const labels = [...samples].flatMap(([, list]) =>
        [...list!.matchAll(/(\w+)="/g)].map(([, label]) => label!),
      )
      return [name, type, ...new Set(labels.sort())].join(' ')
    })
    .sort()
}
