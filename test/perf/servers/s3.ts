import { startS3 } from '../../s3.ts'

/** An object store in a process of its own, so that its memory is not the edge's. */

const server = await startS3()
process.on('SIGTERM', () => void server.stop().finally(() => process.exit(0)))
process.send?.({ ready: true, env: server.env })
