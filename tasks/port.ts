import { createServer } from 'node:net'

const REASONS: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) =>
    `Port ${port} of ${host} is in use: stop what listens there, or set another port`,
  EADDRNOTAVAIL: (host) => `HOST can't be ${host}: this machine has no such address`,
  ENOTFOUND: (host) => `HOST can't be ${host}: the name is unknown`,
  EACCES: (_, port) => `Port ${port} is for privileged users: set one above 1023`,
}

/** Why a server can't listen there, with what to do; null when it can. Also another server that shares the port is in the way. */
export function portProblem(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code = '', message }: NodeJS.ErrnoException) =>
      resolve(REASONS[code]?.(host, port) ?? `Can't listen on port ${port} of ${host}: ${message}`),
    )
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
}
