import * as uWS from 'uWebSockets.js'
import pg from 'pg'

/** The reference for enqueueing: a bare uWebSockets.js handler that adds one job of graphile-worker per POST. */

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const ADD = {
  name: 'add',
  text: `select id::text from graphile_worker.add_job('extract', json_build_object('documentId', $1::int))`,
}

const app = uWS.App().post('/api/v1/documents/:id/extract', (res, req) => {
  let aborted = false
  res.onAborted(() => {
    aborted = true
  })
  pool.query<{ id: string }>({ ...ADD, values: [Number(req.getParameter(0))] }).then(
    ({ rows }) => {
      if (aborted) return
      res.cork(() => {
        res.writeStatus('202 Accepted')
        res.writeHeader('content-type', 'application/json; charset=utf-8')
        res.end(JSON.stringify({ job_id: rows[0]!.id }))
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
