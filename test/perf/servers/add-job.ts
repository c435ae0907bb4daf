import * as uWS from 'uWebSockets.js'
import pg from 'pg'

/** The reference for enqueueing: a bare uWebSockets.js handler that adds one job of graphile-worker per POST. */

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const ADD_JOB = {
  name: 'add',
  text: `select id::text from graphile_worker.add_job('io_simulation_task', '{}')`,
}

const app = uWS.App().post('/api/v1/tasks/enqueue', (res) => {
  let aborted = false
  res.onAborted(() => {
    aborted = true
  })
  pool.query<{ id: string }>(ADD_JOB).then(
    ({ rows }) => {
      if (aborted) return
      res.cork(() => {
        res.writeStatus('202 Accepted')
        res.writeHeader('content-type', 'application/json; charset=utf-8')
        res.end(JSON.stringify({ task_id: rows[0]!.id }))
      })
    },
    () => process.exit(1),
  )
})
app.listen('127.0.0.1', 0, (socket) => {
  process.send!({ port: uWS.us_socket_local_port(socket as never) })
})
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
