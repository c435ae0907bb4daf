import pino from 'pino'
import { migrate } from '../../sql/server/migrate.ts'
import { Cluster } from '../cluster.ts'
import { type Api, startEdge } from '../edge/harness.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'
import { openUnownedLink } from './link.ts'

/** A primary, an asynchronous standby and edges that read from both. */
export interface ReplicaWorld {
  readonly cluster: Cluster
  readonly edges: readonly [Api, Api]
  /** Link from the edges to the standby. */
  readonly link: Awaited<ReturnType<typeof openUnownedLink>>
  /** Log lines of the first edge about the replica. */
  readonly logged: string[]
  /** Pauses replay on the standby until `resume`. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Resolves when the first edge logs this state of the replica. */
  waitForState(state: string): Promise<void>
}

export async function createReplicaWorld(): Promise<ReplicaWorld> {
  const cluster = await Cluster.start()
  stopAfterFile(() => cluster.stop())
  await migrate(cluster.primary.url)
  await cluster.attachStandby(false)
  const { primary, standby } = cluster
  const link = await openUnownedLink(standby.url)
  stopAfterFile(async () => link.close())
  const logged: string[] = []
  const log = pino(
    { level: 'info' },
    {
      write: (line) => {
        const { msg } = JSON.parse(line) as { msg: string }
        if (msg.includes('replica')) logged.push(msg)
      },
    },
  )
  // The default timeouts, which limit how long a silent standby can delay a read.
  const limits = { READ_TIMEOUT_SECONDS: '2', LIST_TIMEOUT_SECONDS: '5' }
  const env = { AUTH_LEVEL: 'basic', DATABASE_URL: primary.url, DATABASE_REPLICA_URL: link.url, ...limits }
  const edges = [await startEdge(primary.url, { env, log }), await startEdge(primary.url, { env })] as const
  const state = async () => String((await standby.query('select pg_get_wal_replay_pause_state() as s'))[0]!.s)
  return {
    ...{ cluster, edges, link, logged },
    pause: async () => {
      await standby.query('select pg_wal_replay_pause()')
      await until('replay is paused', async () => (await state()) === 'paused')
    },
    resume: async () => {
      await standby.query('select pg_wal_replay_resume()')
    },
    waitForState: async (wanted) => {
      await until(
        `the replica is ${wanted}`,
        async () => (await edges[0].get('/ready')).json.replica.state === wanted,
        30_000,
      )
    },
  }
}

/** Runs `work`. Returns its result as `answer`, and how many reads the edge sent to each server meanwhile. */
export async function countReads<T>({ serving }: Api, work: () => Promise<T>) {
  const { counts } = serving.edge.replica!
  const before = { ...counts }
  const answer = await work()
  return { answer, replica: counts.replica - before.replica, primary: counts.primary - before.primary }
}
