import { readFile } from 'node:fs/promises'
import { addAbortSignal } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type Io, UsageError } from './io.ts'

/**
 * Returns the JSON value of an argument: JSON text, `@FILE`, or `-` for the standard input.
 * @param name of the argument, for errors.
 * @throws UsageError if it is no JSON or the file cannot be read; AbortError if Ctrl-C ends the standard input.
 */
export async function readJson(name: string, argument: string, io: Io): Promise<unknown> {
  if (argument === '-') return parseBytes(name, await buffer(addAbortSignal(io.signal, io.stdin)))
  if (argument.startsWith('@')) return readJsonFile(name, argument.slice(1))
  return parse(name, argument)
}

/** Returns the JSON value of a file. @throws UsageError */
export async function readJsonFile(name: string, path: string): Promise<unknown> {
  let content: Buffer
  try {
    content = await readFile(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a folder' : code
    throw new UsageError(`${name}: can't read ${path}: ${reason}`)
  }
  return parseBytes(`${name}: ${path}`, content)
}

function parseBytes(name: string, bytes: Buffer): unknown {
  let content: string
  try {
    // A lenient decoder would replace characters of other encodings.
    content = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError(`${name} must be UTF-8`)
  }
  return parse(name, content)
}

function parse(name: string, content: string): unknown {
  try {
    return JSON.parse(content)
  } catch (error) {
    throw new UsageError(`${name} must be JSON: ${(error as Error).message}`)
  }
}
