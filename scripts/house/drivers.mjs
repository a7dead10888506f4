// The drivers of the server's core: files that make a core, or take batches out of one.

const MAKES = /(?<!function )\bcreateCore\(/;
const TAKES = /\b[cC]ore\.take\(\)/;

/** The paths of such files. files: [{path, text}] */
export function coreDrivers(files) {
  return files.filter(({ text }) => MAKES.test(text) || TAKES.test(text)).map(({ path }) => path);
}
