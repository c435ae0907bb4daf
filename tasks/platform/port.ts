import { createServer } from 'node:net'

const ERROR_MESSAGES: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) =>
    `Port ${port} of ${host} is in use: stop the process that listens there, or set another port`,
  EADDRNOTAVAIL: (host) => `HOST can't be ${host}: it is not an address of this machine`,
  ENOTFOUND: (host) => `HOST can't be ${host}: the name does not resolve`,
  EACCES: (_, port) => `Port ${port} requires privileges: set a port above 1023`,
}

/**
 * Returns the reason why a server cannot listen on a port, with a fix; null if the port is free. A port that another
 * server shares is not free.
 */
export function findPortProblem(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code = '', message }: NodeJS.ErrnoException) =>
      resolve(ERROR_MESSAGES[code]?.(host, port) ?? `Can't listen on port ${port} of ${host}: ${message}`),
    )
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
}
