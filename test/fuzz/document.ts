import type { Json } from './values.ts'

/** Types of the parts of an OpenAPI document that requests and checks use. */

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly schema: Json
}

interface OperationObject {
  readonly content?: Readonly<Record<string, { readonly schema: Json }>>
}

export interface Operation {
  readonly method: string
  /** The path, with parameter names in braces. */
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: OperationObject
  readonly responses: Readonly<Record<string, OperationObject>>
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'method' | 'path'>>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Json>> }
}

export const nameOf = ({ method, path }: Operation): string => `${method} ${path}`

export function operationsOf({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      parameters: operation.parameters ?? [],
      method: method.toUpperCase(),
      path,
    })),
  )
}
