/** Declares the used part of the decoder of JPEG XL, whose own types need those of browsers. */
declare module '@jsquash/jxl/codec/dec/jxl_dec.js' {
  interface Image {
    readonly data: Uint8ClampedArray
    readonly width: number
    readonly height: number
  }
  /** `decode` returns null for a damaged image. */
  const create: (options: {
    readonly wasmBinary: Uint8Array
    readonly printErr: (line: string) => void
  }) => Promise<{ decode(bytes: Uint8Array): Image | null }>
  export default create
}
