import * as uWS from 'uWebSockets.js'
import pg from 'pg'
import { Stripe } from 'stripe'

/** The reference for events: a bare uWebSockets.js handler that verifies the signature and stores each event once. */

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const INSERT_EVENT = {
  name: 'store',
  text: 'insert into event (id, data) values ($1, $2) on conflict do nothing',
}
const SECRET = process.env.SECRET!

const app = uWS.App().post('/api/v1/payment/webhook', (res, req) => {
  const header = req.getHeader('stripe-signature')
  const chunks: Buffer[] = []
  let aborted = false
  res.onAborted(() => {
    aborted = true
  })
  res.onData((chunk, last) => {
    chunks.push(Buffer.from(Buffer.from(chunk)))
    if (!last) return
    const body = Buffer.concat(chunks)
    const { id } = Stripe.webhooks.constructEvent(body, header, SECRET)
    pool.query({ ...INSERT_EVENT, values: [id, body.toString()] }).then(
      () => {
        if (aborted) return
        res.cork(() => {
          res.writeHeader('content-type', 'application/json; charset=utf-8')
          res.end('{"received":"true"}')
        })
      },
      () => process.exit(1),
    )
  })
})
app.listen('127.0.0.1', 0, (socket) => {
  process.send!({ port: uWS.us_socket_local_port(socket as never) })
})
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
