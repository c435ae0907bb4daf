/** Declares the used part of libheif, whose bundle has no type declarations. */
declare module 'libheif-js/wasm-bundle.js' {
  interface Pixels {
    readonly data: Uint8ClampedArray
    readonly width: number
    readonly height: number
  }
  interface Image {
    get_width(): number
    get_height(): number
    free(): void
    /** Fills `pixels` and passes them to `done`, or passes null for a damaged image. */
    display(pixels: Pixels, done: (pixels: Pixels | null) => void): void
  }
  const libheif: { readonly HeifDecoder: new () => { decode(bytes: Uint8Array): Image[] } }
  export default libheif
}
