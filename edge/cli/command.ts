import type { Api } from './api.ts'
import type { Io } from './io.ts'
import type { Output } from './output.ts'

/** The declaration of a command. Its help and the check of its arguments follow from it. */

export interface Option {
  /** Name of the value in the help, such as `N`; absent for an option without a value. */
  readonly value?: string
  readonly about: string
}

export type Options = Readonly<Record<string, Option>>

/** The given values: a text, or true for an option without a value. */
export type Values<O extends Options = Options> = {
  readonly [N in keyof O]?: (O[N] extends { readonly value: string } ? string : true) | undefined
}

export interface Input<O extends Options = Options> {
  readonly values: Values<O>
  readonly args: readonly string[]
  readonly io: Io
  readonly out: Output
  /** The service. @throws UsageError if its address is invalid. */
  readonly api: Api
}

export interface Command<O extends Options = Options> {
  /** Arguments in the help, such as `JOB…`. `…` accepts several. */
  readonly args: string
  readonly about: string
  readonly options: O
  /** More sentences for the help. */
  readonly notes?: string
  /** Example without `npx millrace`. */
  readonly example: string
  /** Scopes that an API key needs; none if the command sends no request. */
  readonly scopes: readonly string[]
  /** Runs the command and returns its exit status. @throws UsageError, RequestError */
  run(input: Input<O>): Promise<number>
}

export const defineCommand = <const O extends Options>(command: Command<O>): Command<O> => command
