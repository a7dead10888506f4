// Who drives the server's core: makes one and hands it requests, ticks and batches of its own.

const MAKES = /(?<!function )\bcreateCore\(/;

/** The files that make a core. files: [{path, text}] */
export function coreDrivers(files) {
  return files.filter(({ text }) => MAKES.test(text)).map(({ path }) => path);
}
