#!/usr/bin/env bash
# SvtAv1EncApp writes an IVF container into a file that is named .obu.
#
# Package: Debian svt-av1 1.4.1+dfsg-1 with libsvtav1enc1 and libsvtav1dec0 of the same version (Debian 12).
# Expected: the name of the output selects the format, as with aomenc --obu or ffmpeg -f obu: a file .obu begins with a
# temporal delimiter, the bytes 12 00 (AV1 specification, section 7.5).
# Seen: `-b out.obu` begins with the 32 bytes of an IVF header (DKIF, version 0, AV01), and the encoder has no option for plain
# OBUs. Readers that choose by the name refuse or misread the file; readers must look at the content.
set -eu
version=1.4.1+dfsg-1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 .
for package in svt-av1 libsvtav1enc1 libsvtav1dec0; do
    apt-get download "$package=$version" >/dev/null 2>&1
    dpkg -x "$package"_*.deb root
done
library=$(dirname "$(find root -name 'libSvtAv1Enc.so*' | head -n 1)")

# Four grey pictures of 64 x 64, I420.
{
    echo "YUV4MPEG2 W64 H64 F25:1 Ip C420jpeg"
    for _ in 1 2 3 4; do
        echo FRAME
        head -c 6144 /dev/zero | tr '\0' '\200'
    done
} >in.y4m

LD_LIBRARY_PATH="$library" root/usr/bin/SvtAv1EncApp -i in.y4m -b out.obu >log 2>&1
begin=$(head -c 12 out.obu | od -An -c | tr -s ' ')
delimiter=$(od -An -tx1 -j44 -N2 out.obu | tr -d ' ')
options=$(LD_LIBRARY_PATH="$library" root/usr/bin/SvtAv1EncApp --help 2>&1 | grep -ci 'obu' || true)
echo "svt-av1 $version: out.obu begins with:$begin; behind the headers of file and frame: $delimiter; options about OBU: $options"
case $begin in
*"D K I F"*"A V 0 1"*) ;;
*) echo "changed: out.obu is no IVF file any more" >&2; exit 1 ;;
esac
[ "$delimiter" = 1200 ] || { echo "changed: no temporal delimiter behind the headers" >&2; exit 1; }
