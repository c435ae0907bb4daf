import * as uWS from 'uWebSockets.js'
import { readDocument } from '../../../sql/documents/documents.ts'
import { createReader } from '../../../sql/reads/reader.ts'

/** The upper bound for reads: a bare uWebSockets.js handler that only runs the same pipelined query. */

const reader = await createReader({ url: process.env.DATABASE_URL!, applicationName: 'bare' })
const owner = Number(process.env.OWNER)

const app = uWS.App().get('/api/v1/documents/:id', (res, req) => {
  let aborted = false
  res.onAborted(() => {
    aborted = true
  })
  reader.text(readDocument, [Number(req.getParameter(0)), owner]).then(
    (text) => {
      if (aborted) return
      res.cork(() => {
        res.writeHeader('content-type', 'application/json; charset=utf-8')
        res.end(text ?? '')
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
